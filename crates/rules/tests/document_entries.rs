//! The fuzz targets of the small files, run on their committed corpora and on changed copies.
#![expect(clippy::disallowed_methods, reason = "tests make what they test")]

#[cfg(test)]
#[path = "../../../fuzz/entries/documents.rs"]
mod documents;

#[cfg(test)]
mod entries {
    use super::documents;
    use proptest::prelude::*;
    use std::path::Path;

    /// A fuzz target: it takes any bytes.
    type Entry = fn(&[u8]);

    const ENTRIES: [(&str, Entry); 5] = [
        ("state", documents::state),
        ("auth", documents::auth),
        ("manifest", documents::manifest),
        ("catalog", documents::catalog),
        ("policy", documents::policy),
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
        #[test]
        fn changed_copies_hold(
            which in 0..ENTRIES.len(),
            pick in any::<prop::sample::Index>(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        ) {
            let (name, entry) = ENTRIES[which];
            let mut input = pick.get(&corpus(name)).clone();
            for (at, byte) in changes {
                let at = at.index(input.len());
                input[at] = byte;
            }
            entry(&input);
        }
    }
}
