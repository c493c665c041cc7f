//! `trace`: what was called, when, how long it took and how it ended.

mod spans;
mod table;

use super::failure::Failure;
use super::{Outcome, env, output};
use sema_rules::name::ConnectorName;
use sema_vault::ConfigDir;
use spans::{Folder, Span};
use std::process::ExitCode;
use std::time::Duration;
use table::Style;

/// How many requests are shown where nothing is said of it.
const LAST: usize = 50;
/// How often the files are looked at while they are followed.
const TICK: Duration = Duration::from_millis(500);

/// Print what was called: times are in UTC.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Arguments and results are in the trace of a launch only if SEMA_TRACE_CONTENT=on stands in \
    the environment that the engine starts it with; --json shows them.\n\n\
    Examples:\n  sema-connector trace browser --errors\n  sema-connector trace --follow --slow 1000"
)]
pub(super) struct Args {
    /// The connector's name; without it, all connectors.
    name: Option<ConnectorName>,
    /// Show so many of the newest requests (50; with --launch, all).
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Go on and show each request once it has ended.
    #[arg(long)]
    follow: bool,
    /// Print the spans, a line of JSON each.
    #[arg(long)]
    json: bool,
    /// Only requests that took at least so many milliseconds.
    #[arg(long, value_name = "MS")]
    slow: Option<u64>,
    /// Only requests that did not succeed.
    #[arg(long)]
    errors: bool,
    /// Show the requests of one launch along its time.
    #[arg(long, value_name = "ID", conflicts_with = "follow")]
    launch: Option<String>,
}

pub(super) fn run(args: &Args) -> Outcome {
    let Some(config) = env::open_config()? else {
        return nothing(args);
    };
    if let Some(name) = &args.name
        && config.connector(name)?.is_none()
    {
        return Err(
            Failure::refused(format_args!("there is no connector {name}"))
                .hint("run: sema-connector list"),
        );
    }
    let mut folders = folders(&config, args)?;
    let mut spans = Vec::new();
    for folder in &mut folders {
        folder.read_last(args.needed(), &mut spans)?;
    }
    spans.retain(|span| args.wants(span));
    spans.sort_by_key(|span| span.end);
    spans.drain(..spans.len().saturating_sub(args.shown()));
    let style = Style::new(args.name.is_none());
    if spans.is_empty() && !args.follow {
        return nothing(args);
    }
    output::data(&args.text(&spans, &style))?;
    if args.follow {
        return follow(&config, folders, args, &style);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what is added, in old files and new ones, until the reader goes away.
fn follow(config: &ConfigDir, mut folders: Vec<Folder>, args: &Args, style: &Style) -> Outcome {
    loop {
        std::thread::sleep(TICK);
        for new in self::folders(config, args)? {
            if !folders.iter().any(|known| known.is(&new)) {
                folders.push(new);
            }
        }
        let mut spans = Vec::new();
        for folder in &mut folders {
            folder.read_new(&mut spans)?;
        }
        spans.retain(|span| args.wants(span));
        spans.sort_by_key(|span| span.end);
        if !spans.is_empty() && !output::read_on(&args.lines(&spans, style))? {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn folders(config: &ConfigDir, args: &Args) -> Result<Vec<Folder>, Failure> {
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => config.connectors()?,
    };
    let mut folders = Vec::new();
    for name in names {
        let Some(connector) = config.connector(&name)? else {
            continue;
        };
        if let Some(dir) = connector.dir().sub("trace")? {
            folders.push(Folder::new(dir));
        }
    }
    Ok(folders)
}

/// Nothing is no failure, but it is said.
fn nothing(args: &Args) -> Outcome {
    output::say("no request to show");
    let hint = if args.errors || args.slow.is_some() || args.launch.is_some() {
        "run it without --errors, --slow and --launch to see every request"
    } else {
        "a request is here once an engine that runs the connector has made one"
    };
    output::labelled(output::Label::Hint, hint);
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn wants(&self, span: &Span) -> bool {
        let launch = self.launch.as_deref();
        (!self.errors || span.is_error())
            && self
                .slow
                .is_none_or(|least| span.nanoseconds() >= least.saturating_mul(1_000_000))
            && launch.is_none_or(|id| span.launch() == id)
    }

    /// How many requests are shown.
    fn shown(&self) -> usize {
        let all = if self.launch.is_some() {
            usize::MAX
        } else {
            LAST
        };
        self.last.unwrap_or(all)
    }

    /// How many lines of each file are read for them: a filter may leave any.
    fn needed(&self) -> usize {
        if self.errors || self.slow.is_some() || self.launch.is_some() {
            usize::MAX
        } else {
            self.shown()
        }
    }

    fn text(&self, spans: &[Span], style: &Style) -> String {
        match &self.launch {
            _ if self.json => self.lines(spans, style),
            Some(_) => style.waterfall(spans),
            None => format!("{}{}", style.header(), self.lines(spans, style)),
        }
    }

    fn lines(&self, spans: &[Span], style: &Style) -> String {
        let line = |span: &Span| match self.json {
            true => format!("{}\n", span.line),
            false => style.row(span),
        };
        spans.iter().map(line).collect()
    }
}
