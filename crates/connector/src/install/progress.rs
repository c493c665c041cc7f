//! What a person sees while archives come: on a terminal one bar an archive and a total, else one
//! line an archive. Everything goes to standard error; a closed one is no failure.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// How much a person wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    /// Bars on a terminal, lines elsewhere.
    Auto,
    /// Nothing.
    Silent,
}

/// The progress of one command.
pub struct Progress {
    bars: Option<(MultiProgress, ProgressBar)>,
    silent: bool,
}

/// The progress of one archive.
pub struct Bar<'a> {
    all: &'a Progress,
    bar: Option<ProgressBar>,
    counted: u64,
    name: String,
}

impl Progress {
    /// Starts with nothing known of how much will come.
    pub fn new(talk: Talk) -> Self {
        let bars = (talk == Talk::Auto && io::stderr().is_terminal()).then(|| {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            let total = all.add(
                ProgressBar::new(0)
                    .with_style(style("total"))
                    .with_prefix("total"),
            );
            (all, total)
        });
        Self {
            bars,
            silent: talk == Talk::Silent,
        }
    }

    /// Says one line.
    pub fn line(&self, text: &str) {
        if self.silent {
            return;
        }
        match &self.bars {
            Some((all, _)) => drop(all.println(text)),
            None => drop(writeln!(io::stderr(), "{text}")),
        }
    }

    /// Adds an archive of `bytes` bytes.
    pub fn archive(&self, name: &str, bytes: u64) -> Bar<'_> {
        let bar = self.bars.as_ref().map(|(all, total)| {
            total.inc_length(bytes);
            let bar = ProgressBar::new(bytes)
                .with_style(style("archive"))
                .with_prefix(name.to_owned());
            all.insert_before(total, bar)
        });
        Bar {
            all: self,
            bar,
            counted: 0,
            name: name.to_owned(),
        }
    }

    /// Says what is done now, where a bar shows it.
    pub fn stage(&self, text: &str) {
        match &self.bars {
            Some((_, total)) => total.set_message(text.to_owned()),
            None => self.line(text),
        }
    }

    /// Takes the bars away.
    pub fn finish(&self) {
        if let Some((_, total)) = &self.bars {
            total.finish_and_clear();
        }
    }
}

impl Bar<'_> {
    /// So many bytes are there now; fewer than before after a restart.
    pub fn at(&mut self, bytes: u64) {
        if let (Some(bar), Some((_, total))) = (&self.bar, &self.all.bars) {
            bar.set_position(bytes);
            match bytes.checked_sub(self.counted) {
                Some(more) => total.inc(more),
                None => total.dec(self.counted - bytes),
            }
        }
        self.counted = bytes;
    }

    /// Another try follows a failure.
    pub fn again(&self, reason: &str, pause: Duration, number: u32, of: u32) {
        let seconds = pause.as_secs_f32();
        let text = format!(
            "{}: {reason}; try {number} of {of} in {seconds:.1} s",
            self.name
        );
        match &self.bar {
            Some(bar) => bar.set_message(format!("{reason}; try {number} of {of}")),
            None => self.all.line(&text),
        }
    }

    /// The archive is whole and is the pinned one.
    pub fn done(self, how: &str) {
        let text = format!("{how} {} ({})", self.name, bytes(self.counted));
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None => self.all.line(&text),
        }
    }
}

fn style(kind: &str) -> ProgressStyle {
    let template = match kind {
        "total" => {
            "{prefix:26!}{wide_bar:.cyan/dim} {decimal_bytes:>9} of {decimal_total_bytes:>9} {eta:>4} {msg}"
        }
        _ => {
            "{prefix:26!}{wide_bar:.cyan/dim} {decimal_bytes:>9} of {decimal_total_bytes:>9} {decimal_bytes_per_sec:>11} {msg}"
        }
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Bytes for people: `69,995,309 bytes`, from a million on `70.0 MB`.
pub fn bytes(count: u64) -> String {
    if count < 1_000_000 {
        return format!("{} bytes", grouped(count));
    }
    let tenths = count / 100_000;
    format!("{}.{} MB", grouped(tenths / 10), tenths % 10)
}

/// A number with commas between thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        let shown = [
            0,
            999,
            24_095,
            999_999,
            1_000_000,
            69_995_309,
            1_234_567_890,
        ]
        .map(bytes);
        assert_eq!(
            shown,
            [
                "0 bytes",
                "999 bytes",
                "24,095 bytes",
                "999,999 bytes",
                "1.0 MB",
                "69.9 MB",
                "1,234.5 MB"
            ]
        );
    }
}
