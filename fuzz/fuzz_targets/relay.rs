#![no_main]

#[path = "../entries/relay.rs"]
mod relay;

libfuzzer_sys::fuzz_target!(|input: &[u8]| relay::relay(input));
