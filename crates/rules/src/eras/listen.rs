//! `subscriptions/listen`: streams of notifications, each told apart by the id that opened it.

use super::answer;
use super::request::Refusal;
use super::{Eras, Request};
use crate::edit;
use crate::envelope::{self, Envelope, Id};
use crate::hop::{Step, status};
use crate::json::{self, Kind};
use crate::wire::{self, Code};
use serde_json::{Map, Value, json};

/// How many streams may be open at once.
const STREAMS: usize = 64;

/// What a stream wants to hear of.
#[derive(Debug)]
pub(super) struct Listener {
    /// The id that opened it, as written.
    id: Vec<u8>,
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

impl Listener {
    /// What of the filter is honoured: what we tell ourselves, and what the connector can tell.
    fn honoured(id: Id<'_>, filter: &[u8], eras: &Eras) -> Result<Self, Refusal> {
        let wants = |name| match envelope::member(filter, name)? {
            None => Ok(false),
            Some(b"true") => Ok(true),
            Some(b"false") => Ok(false),
            Some(_) => Err(Refusal::Invalid("a field of notifications is no boolean")),
        };
        let own = status::uri(eras.hop.name());
        let subscribable = answer::is_able(&eras.hop, "resources", "subscribe");
        let mut uris = uris(filter)?;
        uris.retain(|uri| subscribable || *uri == own);
        let told = |group| answer::is_able(&eras.hop, group, "listChanged");
        Ok(Self {
            id: id.as_bytes().to_vec(),
            tools: wants("toolsListChanged")?,
            prompts: wants("promptsListChanged")? && told("prompts"),
            resources: wants("resourcesListChanged")? && told("resources"),
            uris,
        })
    }

    fn acknowledged(&self) -> Vec<u8> {
        let mut filter = Map::new();
        for (name, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                filter.insert(name.to_owned(), Value::Bool(true));
            }
        }
        if !self.uris.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(self.uris));
        }
        let filter = Value::Object(filter).to_string();
        let parts: [&[u8]; 5] = [
            br#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"#,
            &self.tag(),
            br#"},"notifications":"#,
            filter.as_bytes(),
            b"}}",
        ];
        parts.concat()
    }

    fn tag(&self) -> Vec<u8> {
        [
            br#""io.modelcontextprotocol/subscriptionId":"#,
            self.id.as_slice(),
        ]
        .concat()
    }

    fn wants(&self, method: &str, params: Option<&[u8]>) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            "notifications/resources/list_changed" => self.resources,
            "notifications/resources/updated" => {
                let uri = params.and_then(|params| envelope::member(params, "uri").ok()?);
                let uri = uri.map(envelope::text_of);
                uri.is_some_and(|uri| self.uris.iter().any(|own| *own == uri))
            }
            _ => false,
        }
    }

    /// The notification as this stream carries it.
    fn tagged(&self, line: &[u8], message: &Envelope<'_>) -> Option<Vec<u8>> {
        match message.params {
            Some(params) if json::kind(params) == Kind::Object => {
                let tagged = edit::with_meta(params, &self.tag()).ok()?;
                Some(edit::splice(line, params, &tagged))
            }
            Some(_) => None,
            None => {
                let params = [br#""params":{"_meta":{"#, self.tag().as_slice(), b"}}"].concat();
                Some(edit::prepend_members(message.text, &params))
            }
        }
    }

    /// The answer that ends the stream in good order.
    fn ended(&self) -> Vec<u8> {
        let parts: [&[u8]; 5] = [
            br#"{"jsonrpc":"2.0","id":"#,
            &self.id,
            br#","result":{"resultType":"complete","_meta":{"#,
            &self.tag(),
            b"}}}",
        ];
        parts.concat()
    }
}

impl Eras {
    /// Opens a stream.
    pub(super) fn listen(&mut self, request: &Request<'_>, out: &mut Step) -> Result<(), Refusal> {
        if self.listeners.len() >= STREAMS {
            let why = format!("{STREAMS} subscriptions are open, and no more may be");
            let id = Some(request.id.as_bytes());
            out.to_engine
                .push(wire::refusal(self.hop.name(), id, Code::Internal, &why));
            return Ok(());
        }
        let filter = match request.params {
            Some(params) => envelope::member(params, "notifications")?,
            None => None,
        };
        let filter = filter.filter(|filter| json::kind(filter) == Kind::Object);
        let filter = filter.ok_or(Refusal::Invalid("notifications is missing or no object"))?;
        let listener = Listener::honoured(request.id, filter, self)?;
        out.to_engine.push(listener.acknowledged());
        let mut new = listener.uris.clone();
        new.retain(|uri| !self.listeners.iter().any(|other| other.uris.contains(uri)));
        self.listeners.push(listener);
        for uri in new {
            self.tell_of("resources/subscribe", &uri, out);
        }
        Ok(())
    }

    /// Ends the stream that this id opened. False where there is none.
    pub(super) fn end_stream(&mut self, id: Id<'_>, out: &mut Step) -> bool {
        let key = id.key();
        let opened =
            |listener: &Listener| Id::read(&listener.id).map(Id::key).as_ref() == Some(&key);
        let Some(at) = self.listeners.iter().position(opened) else {
            return false;
        };
        let gone = self.listeners.swap_remove(at);
        for uri in &gone.uris {
            let heard = self.listeners.iter().any(|other| other.uris.contains(uri));
            // An engine of the handshake era may have subscribed for itself.
            if !heard && !self.handshake_client {
                self.tell_of("resources/unsubscribe", uri, out);
            }
        }
        true
    }

    /// Hands a notification to the streams that want it.
    pub(super) fn tell_streams(
        &self,
        method: &str,
        line: &[u8],
        message: &Envelope<'_>,
        out: &mut Step,
    ) {
        let wanting = self
            .listeners
            .iter()
            .filter(|listener| listener.wants(method, message.params));
        out.to_engine
            .extend(wanting.filter_map(|listener| listener.tagged(line, message)));
    }

    /// Ends the streams that heard of the connector's own resources: another connector does not
    /// know of them.
    pub(super) fn end_foreign_streams(&mut self, out: &mut Step) {
        let own = status::uri(self.hop.name());
        let foreign = |listener: &mut Listener| listener.uris.iter().any(|uri| *uri != own);
        let ended = self.listeners.extract_if(.., foreign);
        out.to_engine.extend(ended.map(|listener| listener.ended()));
    }

    /// Ends every stream in good order.
    pub(super) fn end_streams(&mut self, out: &mut Step) {
        let ended = self.listeners.drain(..);
        out.to_engine.extend(ended.map(|listener| listener.ended()));
    }

    fn tell_of(&mut self, method: &str, uri: &str, out: &mut Step) {
        self.tell(method, &json!({"uri": uri}), out);
    }
}

/// The resources that a filter names, each once.
fn uris(filter: &[u8]) -> Result<Vec<String>, Refusal> {
    let why = Refusal::Invalid("resourceSubscriptions is no list of texts");
    let Some(list) = envelope::member(filter, "resourceSubscriptions")? else {
        return Ok(Vec::new());
    };
    if json::kind(list) != Kind::Array {
        return Err(why);
    }
    let (mut uris, mut others) = (Vec::new(), false);
    json::each_element(list, |uri| match json::kind(uri) {
        Kind::String => uris.push(envelope::text_of(uri).into_owned()),
        _ => others = true,
    })
    .map_err(envelope::Why::from)?;
    if others {
        return Err(why);
    }
    uris.sort();
    uris.dedup();
    Ok(uris)
}
