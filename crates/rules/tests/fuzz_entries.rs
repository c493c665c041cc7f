//! The fuzz targets, run on their committed corpora and on changed copies of them.
#![expect(clippy::disallowed_methods, reason = "tests make what they test")]

#[cfg(test)]
#[path = "../../../fuzz/entries/documents.rs"]
mod documents;
#[cfg(test)]
#[path = "../../../fuzz/entries/eras.rs"]
mod eras;
#[cfg(test)]
#[path = "../../../fuzz/entries/hop.rs"]
mod hop;
#[cfg(test)]
#[path = "../../../fuzz/entries/relay.rs"]
mod relay;
#[cfg(test)]
#[path = "../../../fuzz/entries/wire.rs"]
mod wire;

#[cfg(test)]
mod entries {
    use super::{documents, eras, hop, relay, wire};
    use proptest::prelude::*;
    use std::path::Path;

    /// A fuzz target: it takes any bytes.
    type Entry = fn(&[u8]);

    const ENTRIES: [(&str, Entry); 11] = [
        ("state", documents::state),
        ("auth", documents::auth),
        ("manifest", documents::manifest),
        ("catalog", documents::catalog),
        ("policy", documents::policy),
        ("relay", relay::relay),
        ("frame", wire::frame),
        ("envelope", wire::envelope),
        ("merge", wire::merge),
        ("hop", hop::hop),
        ("eras", eras::eras),
    ];

    fn corpus(name: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(name);
        let files = std::fs::read_dir(folder).unwrap();
        files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect()
    }

    #[test]
    fn the_corpora_hold() {
        for (name, entry) in ENTRIES {
            let corpus = corpus(name);
            assert!(corpus.len() >= 5, "{name}");
            corpus.iter().for_each(|input| entry(input));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn changed_copies_hold(
            target in 0..ENTRIES.len(),
            pick in any::<prop::sample::Index>(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let (name, entry) = ENTRIES[target];
            let corpus = corpus(name);
            let mut input = pick.get(&corpus).clone();
            for (at, byte) in changes {
                if !input.is_empty() {
                    let at = at.index(input.len());
                    input[at] = byte;
                }
            }
            entry(&input);
        }
    }
}
