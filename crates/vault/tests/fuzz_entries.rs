//! The fuzz target `archive`, run on its committed corpus and on changed copies of it.
#![expect(clippy::disallowed_methods, reason = "tests make what they test")]

#[cfg(test)]
#[path = "../../../fuzz/entries/archive.rs"]
mod archive;

#[cfg(test)]
mod entries {
    use super::archive;
    use proptest::prelude::*;
    use std::path::Path;

    fn corpus() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/archive");
        let files = std::fs::read_dir(folder).unwrap();
        files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect()
    }

    #[test]
    fn the_corpus_holds() {
        let corpus = corpus();
        assert!(corpus.len() >= 10);
        corpus.iter().for_each(|input| archive::archive(input));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn changed_copies_hold(
            pick in any::<prop::sample::Index>(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let corpus = corpus();
            let mut input = pick.get(&corpus).clone();
            for (at, byte) in changes {
                let at = at.index(input.len());
                input[at] = byte;
            }
            archive::archive(&input);
        }
    }
}
