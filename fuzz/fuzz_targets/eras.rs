#![no_main]

#[path = "../entries/eras.rs"]
mod eras;

libfuzzer_sys::fuzz_target!(|input: &[u8]| eras::eras(input));
