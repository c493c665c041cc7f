#![no_main]

#[path = "../entries/archive.rs"]
mod archive;

libfuzzer_sys::fuzz_target!(|input: &[u8]| archive::archive(input));
