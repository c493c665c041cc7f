#![no_main]

#[path = "../entries/documents.rs"]
#[expect(dead_code, reason = "each target runs one entry of the file")]
mod documents;

libfuzzer_sys::fuzz_target!(|input: &[u8]| documents::policy(input));
