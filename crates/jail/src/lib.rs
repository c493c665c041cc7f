//! Starts programs.
