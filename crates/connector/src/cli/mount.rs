//! `sema-connector mount NAME -- COMMAND [ARG...]`: any MCP server as a connector.
//!
//! What it may see besides the system's programs and libraries is decided here, once, and said:
//! the command, every argument that is the absolute path of something, and what `--read` and
//! `--write` name. What would hand over the person's whole home or our own secrets is refused.

use super::failure::Failure;
use super::grant::{self, Protected};
use super::{Outcome, env, output, snippets};
use rustix::fs::{Access, AtFlags, CWD};
use sema_rules::catalog::{Catalog, Entry, Found};
use sema_rules::manifest::{self, Confined, Manifest};
use sema_rules::name::{ConnectorName, Handle};
use sema_rules::quote;
use sema_vault::ConfigDir;
use sema_vault::config::CATALOG;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const CATALOG_LIMIT: usize = 4 * 1024 * 1024;

/// Make any MCP server that speaks over standard input and output a connector
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What the program may see of the disk is recorded: the system's programs and libraries, COMMAND, \
    every ARG that is the absolute path of something, and what --read and --write name. This version does not \
    enforce it yet: the program sees every file that you can see.\n\nExamples:\n  \
    sema-connector mount github --env GITHUB_TOKEN -- /usr/local/bin/github-mcp-server stdio\n  \
    sema-connector mount notes --read /opt/notes --write ~/notes -- /opt/notes/venv/bin/python /opt/notes/server.py"
)]
pub struct Args {
    /// The connector's name.
    name: ConnectorName,
    /// A handle without which the program is not started; it gets the path of a copy in HANDLE_FILE.
    #[arg(long, value_name = "HANDLE")]
    require: Vec<Handle>,
    /// A path that the program may read, too.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// A path that the program may read and write, too.
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// A handle whose secret is set as a variable of the program's own environment.
    #[arg(long, value_name = "HANDLE")]
    env: Vec<Handle>,
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
    /// The program, an absolute path or a name found in PATH, and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &Args) -> Outcome {
    if args.name.as_str() == super::browser_mount::NAME {
        return Err(
            Failure::refused("browser is the name of the browser connector")
                .hint("choose another name, or: sema-connector-browser mount"),
        );
    }
    let launcher = program(&env::current_exe()?.with_file_name("sema-connector"))?;
    let manifest = manifest(args)?;
    mount(args.name.clone(), manifest, &launcher)?.print(args.json)
}

fn manifest(args: &Args) -> Result<Manifest, Failure> {
    let protected = Protected::new(env::home(), &env::config_path()?);
    let mut command = args.command.clone();
    command[0] = find_command(&command[0])?;
    for word in &command {
        if let Some(why) = protected.refuses(Path::new(word)) {
            return Err(Failure::refused(format_args!("{}: {why}", quote::shell(word)))
                .hint("a program behind walls is not given that; name what it needs with --read or --write"));
        }
    }
    let mut handles: Vec<Handle> = Vec::new();
    for handle in args.require.iter().chain(&args.env) {
        if !handles.contains(handle) {
            handles.push(handle.clone());
        }
    }
    Ok(Manifest {
        command,
        required: unique(&args.require),
        handles,
        confined: Confined::ByLauncher,
        read: protected.grants("--read", &args.read)?,
        write: protected.grants("--write", &args.write)?,
        env: unique(&args.env),
    })
}

fn unique(handles: &[Handle]) -> Vec<Handle> {
    let first = |(index, handle): &(usize, &Handle)| !handles[..*index].contains(handle);
    handles
        .iter()
        .enumerate()
        .filter(first)
        .map(|(_, handle)| handle.clone())
        .collect()
}

/// The absolute path of the program: as given, or the first of that name in PATH.
fn find_command(word: &str) -> Result<String, Failure> {
    if word.starts_with('/') {
        return program(Path::new(word));
    }
    if word.contains('/') {
        let here = env::current_dir()?.join(word.trim_start_matches("./"));
        return Err(
            Failure::refused("COMMAND is a relative path").hint(format_args!(
                "name it by its absolute path: {}",
                quote::shell(&here.to_string_lossy())
            )),
        );
    }
    let found = env::path()
        .into_iter()
        .map(|folder| folder.join(word))
        .find(|path| executable(path));
    match found {
        Some(path) => text(&path),
        None => Err(Failure::refused("COMMAND is not found in PATH")
            .hint("name the program by its absolute path")),
    }
}

/// The path as text, of a program that exists and can be run.
pub(super) fn program(path: &Path) -> Result<String, Failure> {
    if !executable(path) {
        return Err(Failure::refused(format_args!(
            "{}: is not a program that can be run",
            path.display()
        ))
        .hint("check that the file is there and executable"));
    }
    text(path)
}

fn executable(path: &Path) -> bool {
    grant::is_file(path)
        && rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// JSON holds Unicode only.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(ToOwned::to_owned).ok_or_else(|| {
        Failure::refused(format_args!(
            "{}: the path is not UTF-8, which JSON cannot hold",
            path.display()
        ))
    })
}

/// A connector that was mounted.
#[derive(Debug)]
pub struct Mounted {
    /// Its name.
    pub name: ConnectorName,
    /// What was written to its `connector.json`.
    pub manifest: Manifest,
    /// What was written to `catalog.json`.
    pub entry: Entry,
    config: ConfigDir,
}

/// Writes `connector.json`, then the catalog entry, both under their locks. A foreign entry of
/// that name is left alone.
pub(super) fn mount(
    name: ConnectorName,
    manifest: Manifest,
    launcher: &str,
) -> Result<Mounted, Failure> {
    let entry = Entry::new(launcher, &name);
    let config = env::create_config()?;
    text(config.path())?;
    let _catalog_held = config.lock_exclusive(&mut output::waiting)?;
    let mut catalog = read_catalog(&config)?;
    if catalog.find(&name) == Some(Found::Foreign) {
        return Err(foreign(&config, &name));
    }
    let connector = config.create_connector(&name)?;
    let _held = connector.lock_exclusive(&mut output::waiting)?;
    connector
        .dir()
        .write_atomic(manifest::FILE, manifest.to_text().as_bytes(), 0o600)?;
    catalog.put(&name, &entry);
    write_catalog(&config, &catalog)?;
    Ok(Mounted {
        name,
        manifest,
        entry,
        config,
    })
}

/// Reads `catalog.json`; an empty catalog where there is none.
pub(super) fn read_catalog(config: &ConfigDir) -> Result<Catalog, Failure> {
    let Some(text) = config.dir().read_policy(CATALOG, CATALOG_LIMIT)? else {
        return Ok(Catalog::default());
    };
    let path = config.path().join(CATALOG);
    Catalog::parse(&text).map_err(|e| {
        Failure::refused(format_args!("{}: {e}", path.display()))
            .hint("mend it by hand, or move it away and mount again")
    })
}

pub(super) fn write_catalog(config: &ConfigDir, catalog: &Catalog) -> Result<(), Failure> {
    Ok(config
        .dir()
        .write_atomic(CATALOG, catalog.to_text().as_bytes(), 0o600)?)
}

pub(super) fn foreign(config: &ConfigDir, name: &ConnectorName) -> Failure {
    let path = config.path().join(CATALOG);
    Failure::refused(format_args!(
        "{}: the entry {name} is not what mount writes",
        path.display()
    ))
    .hint("it was left alone; remove it by hand if nothing needs it")
}

impl Mounted {
    /// How an engine starts it: command, arguments, environment.
    pub fn engine(&self) -> Result<serde_json::Value, Failure> {
        let config = self.named_config()?;
        let (name, entry) = (&self.name, &self.entry);
        let engine = snippets::Engine {
            name,
            entry,
            config: config.as_deref(),
        };
        Ok(engine.json())
    }

    /// The configuration directory, where an engine must be told of it.
    fn named_config(&self) -> Result<Option<String>, Failure> {
        let default = env::default_config_path();
        let named = default.as_deref() != Some(self.config.path());
        named.then(|| text(self.config.path())).transpose()
    }

    /// Prints what was mounted, what it may see, and how a client is told about it.
    pub fn print(&self, json: bool) -> Outcome {
        let config = self.named_config()?;
        let engine = snippets::Engine {
            name: &self.name,
            entry: &self.entry,
            config: config.as_deref(),
        };
        if json {
            output::json(&serde_json::json!({
                "name": self.name, "catalog": self.config.path().join(CATALOG),
                "connector": self.manifest, "engine": engine.json(),
            }))?;
        } else {
            output::data(&format!("{}\n{}", self.summary()?, engine.snippets()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn summary(&self) -> Result<String, Failure> {
        let path = self.config.path().join(CATALOG);
        let mut text = format!("mounted {} in {}\n", self.name, path.display());
        for (what, path) in self.grants() {
            text.push_str(&format!("  {what:<11}{path}\n"));
        }
        if self.manifest.confined == Confined::ByLauncher {
            text.push_str("  note       what it may read and write is not enforced yet: it sees every file that you can see\n");
        }
        let connector = self.config.connector(&self.name)?;
        let stored = |handle: &Handle| match &connector {
            Some(connector) => connector.dir().check_private(handle.as_str()),
            None => Ok(false),
        };
        let wanted = |handle: &&Handle| {
            self.manifest.required.contains(handle) || self.manifest.env.contains(handle)
        };
        for handle in self.manifest.handles.iter().filter(wanted) {
            if !stored(handle)? {
                text.push_str(&format!(
                    "  {:<11}{handle}: {}\n",
                    "not stored",
                    self.store(handle)
                ));
            }
        }
        Ok(text)
    }

    fn store(&self, handle: &Handle) -> String {
        if self.name.as_str() == super::browser_mount::NAME {
            return "echo '{}' | sema-connector-browser auth".to_owned();
        }
        format!("sema-connector auth {} {handle}", self.name)
    }

    fn grants(&self) -> Vec<(&'static str, String)> {
        let manifest = &self.manifest;
        if manifest.confined == Confined::ByItself {
            return vec![("starts", manifest.command[0].clone())];
        }
        let seen = |word: &&String| word.starts_with('/') && grant::exists(Path::new(word));
        let mut grants = vec![("may read", "the system's programs and libraries".to_owned())];
        let read = manifest.command.iter().filter(seen).chain(&manifest.read);
        grants.extend(read.map(|path| ("may read", path.clone())));
        grants.extend(
            manifest
                .write
                .iter()
                .map(|path| ("may write", path.clone())),
        );
        grants.extend(manifest.env.iter().map(|handle| {
            (
                "gets",
                format!("{handle} as a variable of its own environment"),
            )
        }));
        grants
    }
}
