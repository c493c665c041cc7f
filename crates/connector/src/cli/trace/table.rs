//! Spans for a person: a row each, or along the time of one launch.

use super::spans::Span;
use crate::cli::output;

/// How many characters the longest launch takes.
const BAR: u64 = 40;

/// What a row looks like.
pub(super) struct Style {
    /// The rows are of more than one connector.
    connectors: bool,
    coloured: bool,
}

impl Style {
    pub(super) fn new(connectors: bool) -> Self {
        let coloured = output::coloured(&std::io::stdout());
        Self {
            connectors,
            coloured,
        }
    }

    pub(super) fn header(&self) -> String {
        let cells = [
            "TIME (UTC)",
            "CONNECTOR",
            "LAUNCH",
            "TOOL",
            "MS",
            "BYTES",
            "OUTCOME",
        ];
        self.cells(cells)
    }

    pub(super) fn row(&self, span: &Span) -> String {
        let ms = milliseconds(span.nanoseconds());
        let bytes = span.bytes().to_string();
        let (time, called) = (time(span.start), printable(span.called()));
        let (connector, launch) = (printable(span.connector()), printable(span.launch()));
        let outcome = self.outcome(span);
        self.cells([&time, &connector, &launch, &called, &ms, &bytes, &outcome])
    }

    fn cells(&self, [time, connector, launch, tool, ms, bytes, outcome]: [&str; 7]) -> String {
        let connector = match self.connectors {
            true => format!("{connector:<12}  "),
            false => String::new(),
        };
        format!("{time:<24}  {connector}{launch:<8}  {tool:<28}  {ms:>9}  {bytes:>9}  {outcome}\n")
    }

    fn outcome(&self, span: &Span) -> String {
        let text = printable(&span.outcome());
        if self.coloured && span.is_error() {
            format!("\x1b[31m{text}\x1b[0m")
        } else {
            text
        }
    }

    /// The requests of one launch, each with a bar from its begin to its end.
    pub(super) fn waterfall(&self, spans: &[Span]) -> String {
        let mut spans: Vec<&Span> = spans.iter().collect();
        spans.sort_by_key(|span| span.start);
        let Some(first) = spans.first() else {
            return String::new();
        };
        let begin = first.start;
        let end = spans.iter().map(|span| span.end).max().unwrap_or(begin);
        let mut text = format!(
            "launch {} of {}, {}, {} ms\n\n{:>9}  {:>9}  {:<28}  {:<40}  OUTCOME\n",
            printable(first.launch()),
            printable(first.connector()),
            time(begin),
            milliseconds(end - begin),
            "AT MS",
            "MS",
            "TOOL",
            "",
        );
        for span in spans {
            text += &format!(
                "{:>9}  {:>9}  {:<28}  {:<40}  {}\n",
                milliseconds(span.start - begin),
                milliseconds(span.nanoseconds()),
                printable(span.called()),
                bar(span.start - begin, span.end - begin, end - begin),
                self.outcome(span),
            );
        }
        text
    }
}

/// Where a span lies in the whole; at least one character.
fn bar(from: u64, to: u64, whole: u64) -> String {
    let at = |offset: u64| {
        let scaled = u128::from(offset) * u128::from(BAR) / u128::from(whole.max(1));
        usize::try_from(scaled).unwrap_or(0)
    };
    let last = usize::try_from(BAR - 1).unwrap_or(0);
    let from = at(from).min(last);
    let length = at(to).saturating_sub(from).max(1);
    format!("{}{}", " ".repeat(from), "█".repeat(length))
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{}.{}", nanoseconds / 1_000_000, nanoseconds / 100_000 % 10)
}

/// A point of time in UTC, to the millisecond.
fn time(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let ms = nanoseconds / 1_000_000 % 1000;
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of so many days after 1970-01-01, in the calendar whose years begin in
/// March, so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}

/// A name that came from the other side, without what a terminal would obey.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(951_782_400_000_000_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(time(1_796_630_399_999_000_000), "2026-12-07T07:59:59.999Z");
    }

    fn span(start: u64, end: u64, tool: &str, error: &str) -> Span {
        let line = format!(
            r#"{{"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":{{"gen_ai.tool.name":"{tool}","sema.launch":"abcdefgh","sema.connector":"echo","sema.request.bytes":10,"sema.answer.bytes":5{error}}}}}"#
        );
        Span::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_span_that_ends_before_it_begins_takes_no_time() {
        let style = Style {
            connectors: false,
            coloured: false,
        };
        let spans = [span(9_000_000_000_000, 5, "back", "")];
        assert_eq!(spans[0].nanoseconds(), 0);
        let drawn = style.waterfall(&spans);
        assert!(drawn.ends_with("  ok\n") && drawn.len() < 400, "{drawn}");
    }

    #[test]
    fn a_launch_is_drawn_along_its_time() {
        let style = Style {
            connectors: false,
            coloured: false,
        };
        let spans = [
            span(0, 10_000_000, "first", ""),
            span(
                5_000_000,
                20_000_000,
                "second",
                r#","error.type":"tool_error""#,
            ),
            span(
                20_000_000,
                20_000_000,
                "th\\u001bird",
                r#","error.type":"-1""#,
            ),
        ];
        insta::assert_snapshot!(style.waterfall(&spans), @"
        launch abcdefgh of echo, 1970-01-01T00:00:00.000Z, 20.0 ms

            AT MS         MS  TOOL                                                                    OUTCOME
              0.0       10.0  first                         ████████████████████                      ok
              5.0       15.0  second                                  ██████████████████████████████  tool error
             20.0        0.0  th�ird                                                               █  error -1
        ");
        insta::assert_snapshot!(style.header() + &style.row(&spans[1]), @"
        TIME (UTC)                LAUNCH    TOOL                                 MS      BYTES  OUTCOME
        1970-01-01T00:00:00.005Z  abcdefgh  second                             15.0         15  tool error
        ");
    }
}
