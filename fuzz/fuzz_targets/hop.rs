#![no_main]

#[path = "../entries/hop.rs"]
mod hop;

libfuzzer_sys::fuzz_target!(|input: &[u8]| hop::hop(input));
