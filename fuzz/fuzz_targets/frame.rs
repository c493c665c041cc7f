#![no_main]

#[path = "../entries/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|input: &[u8]| wire::frame(input));
