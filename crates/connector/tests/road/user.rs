//! The whole road as an unprivileged user that the test makes: as root one that the machine does
//! not know by name, otherwise the user who runs the tests.

use crate::lab::{BROWSER, Engine, LAUNCHER, Lab, processes, wait_for};
use crate::site::Site;
use crate::trying::mirror;
use serde_json::json;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USER: u32 = 54_321;

/// Someone with a home of their own, in which lie the programs and a mirror.
struct Person {
    lab: Lab,
    uid: u32,
}

impl Person {
    /// One who has the archives, too.
    fn with_mirror() -> Self {
        Self::with(|home| {
            std::fs::create_dir_all(home.join("mirror")).unwrap();
            for archive in std::fs::read_dir(mirror()).unwrap().flatten() {
                // Not the fonts of other scripts: they are not asked for.
                if !archive.file_name().to_str().unwrap().starts_with("fonts-") {
                    copy(&archive.path(), &home.join("mirror"));
                }
            }
        })
    }

    fn with(furnish: impl FnOnce(&Path)) -> Self {
        let lab = Lab::empty("home/config");
        let own = std::fs::metadata(lab.folder()).unwrap().uid();
        let uid = if own == 0 { USER } else { own };
        let home = lab.folder().join("home");
        std::fs::create_dir_all(home.join("programs")).unwrap();
        for program in [LAUNCHER, BROWSER] {
            copy(Path::new(program), &home.join("programs"));
        }
        furnish(&home);
        if own == 0 {
            let owner = format!("{uid}:{uid}");
            let mut chown = Command::new("chown");
            assert!(
                chown
                    .args(["-R", &owner])
                    .arg(lab.folder())
                    .status()
                    .unwrap()
                    .success()
            );
        }
        Self { lab, uid }
    }

    fn program(&self, path: &str) -> PathBuf {
        let name = Path::new(path).file_name().unwrap();
        self.lab.folder().join("home/programs").join(name)
    }

    /// A command of theirs, in an environment with nothing but a home and a search path.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.theirs(Command::new(self.program(program)));
        command.args(args);
        command
    }

    /// The command as they would start it.
    fn theirs(&self, mut command: Command) -> Command {
        command.env_clear();
        command.env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.lab.folder().join("home"));
        command.env("CONFIG_LOCAL_DIR", self.lab.config());
        command.current_dir(self.lab.folder().join("home"));
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(self.uid).gid(self.uid);
        }
        command
    }

    fn done(&self, program: &str, args: &[&str], input: &str) {
        let mut command = self.command(program, args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.unwrap().success());
}

fn field<'s>(status: &'s str, name: &str) -> Vec<&'s str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().split_whitespace().collect()
}

#[test]
fn a_user_without_any_right_goes_the_whole_road() {
    let person = Person::with_mirror();
    person.done(BROWSER, &["install", "--mirror", "mirror"], "");
    person.done(BROWSER, &["auth"], "{}");
    person.done(BROWSER, &["mount"], "");
    person.done(BROWSER, &["status"], "");
    let site =
        Site::html("<h1>Hello</h1><button onclick=\"document.title='clicked'\">press</button>");
    let mut engine = Engine::start(person.command(LAUNCHER, &["run", "browser"]));
    assert_eq!(engine.tools().len(), 25);
    engine.text("browser_navigate", &json!({"url": site.url("/")}));
    engine.text(
        "browser_click",
        &json!({"element": "press", "target": "button"}),
    );
    assert_eq!(engine.evaluate("document.title"), "\"clicked\"");
    engine.text("browser_take_screenshot", &json!({}));
    let all = processes(person.lab.config());
    for kind in ["cli.js", "--type=renderer", "sema-connector-browser"] {
        let (pid, _) = all.iter().find(|(_, line)| line.contains(kind)).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        // Theirs in all four senses, and without a capability outside its own namespace.
        assert_eq!(
            field(&status, "Uid:"),
            vec![person.uid.to_string(); 4],
            "{kind}"
        );
        if kind == "--type=renderer" {
            assert_eq!(field(&status, "Seccomp:"), ["2"]);
            assert_eq!(field(&status, "CapEff:"), ["0000000000000000"]);
        }
    }
    assert!(!all.iter().any(|(_, line)| line.contains("--no-sandbox")));
    assert_eq!(engine.close(), Some(0));
    assert!(processes(person.lab.config()).is_empty());
    assert_eq!(person.lab.launches(), 0);
    for entry in ["BROWSER_STORAGE_STATE", "bin", "trace", "connector.json"] {
        let meta = std::fs::metadata(person.lab.connector().join(entry)).unwrap();
        assert_eq!(meta.uid(), person.uid, "{entry}");
        assert_eq!(meta.mode() & 0o077, 0, "{entry}");
    }
}

/// Answers each line with a million bytes, and never ends by itself.
const LONG_ANSWERS: &str = r#"while read -r line; do
printf '{"jsonrpc":"2.0","id":1,"result":{"x":"'; head -c 1000000 /dev/zero | tr '\0' x; printf '"}}\n'
done"#;

/// Prints what a new pipe holds.
const NEW_PIPE: &str = "import fcntl, os; print(fcntl.fcntl(os.pipe()[0], 1032))";

#[test]
fn a_hundred_launches_leave_a_users_new_pipes_as_they_were() {
    let person = Person::with(|_| {});
    let mount = ["mount", "long", "--", "/bin/sh", "-c", LONG_ANSWERS];
    person.done(LAUNCHER, &mount, "");
    let mut engines: Vec<Engine> = (0..100)
        .map(|_| Engine::silent(person.command(LAUNCHER, &["run", "long"])))
        .collect();
    for engine in &mut engines {
        engine.send(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    }
    for engine in &mut engines {
        assert_eq!(
            engine.next()["result"]["x"].as_str().unwrap().len(),
            1_000_000
        );
    }
    wait_for("a new pipe of 64 KiB", || {
        let mut python = person.theirs(Command::new("/usr/bin/python3"));
        python.args(["-c", NEW_PIPE]);
        python.output().unwrap().stdout == b"65536\n"
    });
}
