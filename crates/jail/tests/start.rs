//! Starts real programs on the real kernel: nothing here is faked.
#![expect(clippy::disallowed_methods, reason = "tests make what they test")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sema_jail::{Child, Exit, Plan, Stdio, confined, obstacles, plain};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

fn shell(script: &str) -> Plan {
    Plan {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/".into(),
        stdin: Stdio::Null,
        stdout: Stdio::Pipe,
        stderr: Stdio::Inherit,
        private_tmp: Some("/.launch".into()),
        read_only: Vec::new(),
    }
}

fn output(mut child: Child) -> (String, Exit) {
    let mut text = String::new();
    File::from(child.stdout.take().unwrap())
        .read_to_string(&mut text)
        .unwrap();
    (text, child.wait())
}

#[test]
fn exit_codes_and_signals_are_handed_on() {
    assert_eq!(output(plain(shell("exit 7")).unwrap()).1, Exit::Code(7));
    assert_eq!(
        output(plain(shell("kill -9 $$")).unwrap()).1,
        Exit::Signal(9)
    );
    assert_eq!(output(confined(shell("exit 7")).unwrap()).1, Exit::Code(7));
    assert_eq!(
        output(confined(shell("kill -9 $$")).unwrap()).1,
        Exit::Signal(9)
    );
    assert_eq!(
        output(confined(shell("kill -15 $$")).unwrap()).1,
        Exit::Signal(15)
    );
}

#[test]
fn a_confined_program_is_an_unprivileged_user_in_a_world_of_its_own() {
    let script = "id -u; ls -d /proc/[0-9]* | wc -l; ls -A /.launch | wc -l; grep Cap /proc/self/status; \
        grep NoNewPrivs /proc/self/status; ls /proc/self/fd; umask; echo x > /.launch/y && echo written; \
        echo x > /etc/y || echo refused; touch /z || echo read-only";
    let (text, exit) = output(confined(shell(script)).unwrap());
    assert_eq!(exit, Exit::Code(0), "{text}");
    let uid = rustix::process::getuid().as_raw();
    let inside = if uid == 0 { 1000 } else { uid };
    assert!(text.starts_with(&format!("{inside}\n")), "{text}");
    assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
    assert!(text.contains("CapBnd:\t0000000000000000"), "{text}");
    assert!(text.contains("NoNewPrivs:\t1"), "{text}");
    assert!(text.contains("\n0\n1\n2\n3\n0077\nwritten\n"), "{text}");
    assert!(text.ends_with("read-only\n"), "{text}");
}

#[test]
fn the_environment_is_the_plans() {
    for start in [plain, confined] {
        let mut plan = shell("");
        plan.program = "/usr/bin/env".into();
        plan.args.clear();
        assert_eq!(output(start(plan).unwrap()).0, "PATH=/usr/bin:/bin\n");
    }
}

#[test]
fn what_cannot_be_started_is_named() {
    for start in [plain, confined] {
        let mut plan = shell("");
        plan.program = "/nonexistent".into();
        assert_eq!(
            start(plan).unwrap_err().to_string(),
            "failed to execute the program"
        );
        let mut plan = shell("");
        plan.cwd = "/nonexistent".into();
        assert_eq!(
            start(plan).unwrap_err().to_string(),
            "failed to enter the working directory"
        );
    }
}

#[test]
fn a_program_that_ends_takes_everything_with_it() {
    let marker = format!("86{}", std::process::id());
    let script = format!(
        "setsid sh -c 'trap \"\" TERM INT HUP; sleep {marker}' & (sleep {marker} &) ; sleep 0.2; exit 3"
    );
    let (_, exit) = output(confined(shell(&script)).unwrap());
    assert_eq!(exit, Exit::Code(3));
    assert_eq!(sleepers(&marker), 0);
}

#[test]
fn the_end_of_the_first_process_ends_all() {
    let marker = format!("87{}", std::process::id());
    let child = confined(shell(&format!("setsid sleep {marker} & sleep {marker}"))).unwrap();
    wait_for(|| sleepers(&marker) == 2);
    child.signal(rustix::process::Signal::KILL);
    assert_eq!(child.wait(), Exit::Signal(9));
    wait_for(|| sleepers(&marker) == 0);
}

#[test]
fn the_end_of_the_starter_ends_all() {
    if std::env::var_os("SEMA_JAIL_STARTER").is_some() {
        starter();
    }
    let marker = format!("88{}", std::process::id());
    let mut starter = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_end_of_the_starter_ends_all", "--nocapture"])
        .env("SEMA_JAIL_STARTER", &marker)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| sleepers(&marker) == 3);
    starter.kill().unwrap();
    starter.wait().unwrap();
    wait_for(|| sleepers(&marker) == 0);
}

/// The process that is killed: it starts one plain and two confined sleepers, from a thread that
/// ends at once.
fn starter() -> ! {
    let marker = std::env::var("SEMA_JAIL_STARTER").unwrap();
    std::thread::spawn(move || {
        plain(shell(&format!("exec sleep {marker}"))).unwrap();
        confined(shell(&format!(
            "trap '' TERM; setsid sleep {marker} & exec sleep {marker}"
        )))
        .unwrap();
    })
    .join()
    .unwrap();
    std::thread::sleep(Duration::from_secs(60));
    std::process::exit(1)
}

#[test]
fn signals_reach_the_program() {
    let script = "trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    for start in [plain, confined] {
        let mut child = start(shell(script)).unwrap();
        let mut stdout = File::from(child.stdout.take().unwrap());
        let mut ready = [0; 6];
        stdout.read_exact(&mut ready).unwrap();
        assert_eq!(child.try_wait(), None);
        child.signal(rustix::process::Signal::TERM);
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), child.wait()), ("term\n", Exit::Code(5)));
    }
}

#[test]
fn this_machine_allows_it() {
    assert_eq!(obstacles(), Ok(()));
}

#[test]
fn paths_are_the_same_inside() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(200));
    std::fs::create_dir(&deep).unwrap();
    let mut plan = shell("pwd; echo seen > file");
    plan.cwd = deep.clone();
    assert_eq!(
        output(confined(plan).unwrap()).0.trim_end(),
        deep.to_str().unwrap()
    );
    assert_eq!(
        std::fs::read_to_string(deep.join("file")).unwrap(),
        "seen\n"
    );
    assert!(!Path::new("/.launch").exists());
}

#[test]
fn what_is_read_only_cannot_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (kept, free) = (dir.path().join("kept"), dir.path().join("free"));
    std::fs::create_dir_all(kept.join("inner")).unwrap();
    std::fs::create_dir(&free).unwrap();
    let script = "echo x > kept/inner/a && echo wrote; echo x > free/a && echo free; rm -r kept && echo removed";
    let mut plan = shell(script);
    plan.cwd = dir.path().to_owned();
    plan.read_only = vec![kept.clone()];
    assert_eq!(output(confined(plan).unwrap()).0, "free\n");
    assert!(kept.join("inner").exists() && free.join("a").exists());
}

/// What stands in the way of a test binary that is started in changed surroundings.
#[test]
fn each_obstacle_is_named_with_its_fix() {
    if std::env::var_os("SEMA_JAIL_OBSTACLE").is_some() {
        let obstacle = obstacles().unwrap_err();
        println!("obstacle: {obstacle} | {}", obstacle.hint());
        assert!(confined(shell("exit 0")).is_err());
        return;
    }
    let named = |script: &str| {
        let output = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .arg(format!(
                "{script} && exec \"$0\" --exact each_obstacle_is_named_with_its_fix --nocapture"
            ))
            .arg(std::env::current_exe().unwrap())
            .env("SEMA_JAIL_OBSTACLE", "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.split("obstacle: ").nth(1));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert_eq!(
        named("mount -t tmpfs masked /proc/fs"),
        "a fresh /proc is forbidden: /proc/fs is masked | start the container with --security-opt \
         systempaths=unconfined (Docker), or with procMount: Unmasked (Kubernetes)"
    );
    assert_eq!(
        named("echo 0 > /proc/sys/user/max_user_namespaces"),
        "user namespaces are forbidden: the sysctl user.max_user_namespaces is 0 | as root: \
         sysctl -w user.max_user_namespaces=15000"
    );
}

#[test]
fn fifty_starts_leave_nothing() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    confined(shell("exit 0")).unwrap().wait();
    let before = descriptors();
    let began = Instant::now();
    for _ in 0..50 {
        assert_eq!(confined(shell("exit 0")).unwrap().wait(), Exit::Code(0));
    }
    let walls = began.elapsed() / 50;
    let began = Instant::now();
    for _ in 0..50 {
        assert_eq!(plain(shell("exit 0")).unwrap().wait(), Exit::Code(0));
    }
    println!("confined {walls:?}, plain {:?}", began.elapsed() / 50);
    assert!(descriptors() <= before + 8, "{before} {}", descriptors());
}

/// How many processes of this machine are `sleep MARKER`.
fn sleepers(marker: &str) -> usize {
    let wanted = format!("sleep\0{marker}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
        })
        .count()
}

fn wait_for(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "it did not come true in 10 s"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
