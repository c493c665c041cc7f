//! Samples, what they come to, and whether a bar is met.

use serde_json::{Value, json};
use std::fmt;

/// Values of one kind, in one unit.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Vec<f64>);

impl Samples {
    pub(super) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(super) fn extend(&mut self, value: Option<f64>) {
        self.0.extend(value);
    }

    pub(super) fn median(&self) -> f64 {
        self.at(1, 2)
    }

    /// The value below which `part` of `whole` of all lie.
    pub(super) fn at(&self, part: usize, whole: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let index = (sorted.len() * part / whole).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// What must hold of a figure.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bar {
    /// Ours is at most this many times the other.
    AtMost(f64),
    /// Ours is at least this many times the other.
    AtLeast(f64),
    /// Ours exceeds the other by less than this.
    Adds(f64),
    /// Told without a bar.
    None,
}

/// One line of the result.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) ours: f64,
    /// What it is measured by.
    pub(super) other: f64,
    pub(super) bar: Bar,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.ours / self.other
    }

    pub(super) fn met(&self) -> Option<bool> {
        let other = self.other;
        match self.bar {
            Bar::AtMost(ratio) => Some(self.ours <= other * ratio),
            Bar::AtLeast(ratio) => Some(self.ours >= other * ratio),
            Bar::Adds(limit) => Some(self.ours - other < limit),
            Bar::None => None,
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "what": self.what, "unit": self.unit, "ours": self.ours, "other": self.other,
            "ratio": self.ratio(), "bar": self.bar.to_string(), "met": self.met(),
        })
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(ratio) => write!(f, "at most {ratio} times"),
            Self::AtLeast(ratio) => write!(f, "at least {ratio} times"),
            Self::Adds(limit) => write!(f, "adds under {limit}"),
            Self::None => Ok(()),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what, unit, bar, ..
        } = self;
        let met = match self.met() {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        let value = |value: f64| match value {
            value if value >= 10_000.0 => format!("{value:.0} {unit}"),
            value if value >= 100.0 => format!("{value:.1} {unit}"),
            value => format!("{value:.2} {unit}"),
        };
        let (ours, other, ratio) = (value(self.ours), value(self.other), self.ratio());
        write!(
            f,
            "{what:<40}{ours:>18} {other:>18} {ratio:>8.3}  {bar} {met}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_tells_whether_its_bar_is_met() {
        let figure = |ours, bar| Pair {
            what: "x".into(),
            unit: "ms",
            ours,
            other: 10.0,
            bar,
        };
        assert_eq!(figure(11.0, Bar::AtMost(1.1)).met(), Some(true));
        assert_eq!(figure(11.1, Bar::AtMost(1.1)).met(), Some(false));
        assert_eq!(figure(9.0, Bar::AtLeast(0.9)).met(), Some(true));
        assert_eq!(figure(31.0, Bar::Adds(20.0)).met(), Some(false));
        assert_eq!(
            figure(11.0, Bar::AtMost(1.1)).to_string(),
            "x                                                 11.00 ms           10.00 ms    1.100  at most 1.1 times met"
        );
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let samples = Samples(vec![9.0, 1.0, 5.0]);
        assert_eq!(samples.median().to_string(), "5");
        assert_eq!(samples.at(99, 100).to_string(), "9");
    }
}
