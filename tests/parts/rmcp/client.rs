//! A client of the Rust kit takes the steps that are named and prints what it was answered, a line
//! of JSON. The argument: `{"mode", "server", "steps"}`.

use rmcp::model::{ClientRequest, PingRequest, ProtocolVersion};
use rmcp::service::{
    ClientLifecycleMode, Peer, RoleClient, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::TokioChildProcess;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::process::Command;

#[derive(Deserialize)]
struct Plan {
    mode: String,
    server: Vec<String>,
    steps: Vec<(String, Value)>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan: Plan = serde_json::from_str(&std::env::args().nth(1).unwrap_or_default())?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let answers = runtime.enable_all().build()?.block_on(take(&plan));
    println!(
        "{}",
        Value::from(answers.unwrap_or_else(|error| vec![failed(&*error)]))
    );
    Ok(())
}

async fn take(plan: &Plan) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let mut command = Command::new(&plan.server[0]);
    command.args(&plan.server[1..]);
    let (server, _) = TokioChildProcess::builder(command)
        .stderr(Stdio::null())
        .spawn()?;
    let client = serve_client_with_lifecycle((), server, lifecycle(&plan.mode)).await?;
    let info = client.peer_info().ok_or("no server information")?;
    let mut answers = vec![json!({
        "version": info.protocol_version,
        "server": info.server_info,
        "capabilities": info.capabilities,
        "instructions": info.instructions,
    })];
    for (method, params) in &plan.steps {
        let answer = step(&client, method, params).await;
        answers.push(answer.unwrap_or_else(|error| failed(&*error)));
    }
    client.cancel().await?;
    Ok(answers)
}

fn lifecycle(mode: &str) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match mode {
        "legacy" => ClientLifecycleMode::Initialize,
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: None,
        },
        _ => ClientLifecycleMode::Discover { preferred_versions },
    }
}

async fn step(
    client: &Peer<RoleClient>,
    method: &str,
    params: &Value,
) -> Result<Value, Box<dyn std::error::Error>> {
    match method {
        "tools/list" => shown(client.list_tools(None).await),
        "tools/call" => shown(client.call_tool(Deserialize::deserialize(params)?).await),
        "resources/list" => shown(client.list_resources(None).await),
        "resources/templates/list" => shown(client.list_resource_templates(None).await),
        "resources/read" => shown(
            client
                .read_resource(Deserialize::deserialize(params)?)
                .await,
        ),
        "prompts/list" => shown(client.list_prompts(None).await),
        "prompts/get" => shown(client.get_prompt(Deserialize::deserialize(params)?).await),
        _ => shown(
            client
                .send_request(ClientRequest::PingRequest(PingRequest::default()))
                .await,
        ),
    }
}

fn shown<T: Serialize>(
    answer: Result<T, ServiceError>,
) -> Result<Value, Box<dyn std::error::Error>> {
    Ok(serde_json::to_value(answer?)?)
}

fn failed(error: &dyn std::error::Error) -> Value {
    json!({"error": error.to_string()})
}
