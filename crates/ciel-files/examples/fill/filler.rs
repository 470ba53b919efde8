//! Fills one paragraph: the breaks of lines are those of least cost, after Knuth and Plass.
//!
//! The costs, and the sizes from which a paragraph is filled in parts, are those of `fmt`, so that
//! the output is the same byte for byte. It does not know where the output goes.

use crate::blanks::{self, Blanks, TAB_COLUMNS};

/// A line has fewer columns than this.
const COLUMNS_MAX: i64 = 75;
/// So many are best.
const COLUMNS_GOAL: i64 = 70;
/// A paragraph with more words or more bytes than these is filled in several parts.
const PART_WORDS_MAX: usize = 998;
const PART_BYTES_MAX: usize = 5000;

const LINE: i64 = square(70);
const SENTENCE_BONUS: i64 = square(50);
const BREAK_AFTER_ABBREVIATION: i64 = square(600);
const BRACKET_BONUS: i64 = square(40);
const PUNCTUATION_BONUS: i64 = square(40);
const LATER_SPLIT_CREDIT: i64 = square(3);

const fn square(columns: i64) -> i64 {
    columns * columns
}

/// The cost of a line that is so much shorter or longer than the best one.
const fn unequal(columns: i64) -> i64 {
    square(columns * 10)
}

/// The cost of two lines that differ so much.
const fn ragged(columns: i64) -> i64 {
    unequal(columns) / 2
}

/// A word, and the best way to fill from it on.
struct Word<'a> {
    text: &'a [u8],
    /// Columns behind it, within a line.
    space: i64,
    has_period: bool,
    ends_sentence: bool,
    cost: i64,
    line_columns: i64,
    /// The word with which the line behind begins.
    next_line: usize,
}

impl<'a> Word<'a> {
    fn new(text: &'a [u8]) -> Word<'a> {
        let mut end = text.len();
        while end > 1 && b")]'\"".contains(&text[end - 1]) {
            end -= 1;
        }
        Word {
            text,
            space: 0,
            has_period: b".?!".contains(&text[end - 1]),
            ends_sentence: false,
            cost: 0,
            line_columns: 0,
            next_line: 0,
        }
    }

    fn opens(&self) -> bool {
        b"(['`\"".contains(&self.text[0])
    }

    fn is_punctuated(&self) -> bool {
        self.text.last().is_some_and(u8::is_ascii_punctuation)
    }

    fn columns(&self) -> i64 {
        self.text.len() as i64
    }
}

/// A paragraph that is being filled.
pub struct Filler<'a> {
    text: &'a [u8],
    indent: i64,
    /// Blanks are written as tabs where they can be, from the first tab of the text on.
    uses_tabs: bool,
    output: Vec<u8>,
    words: Vec<Word<'a>>,
    part_bytes: usize,
    column: i64,
    last_columns: i64,
}

impl<'a> Filler<'a> {
    /// A paragraph with the blanks behind it.
    pub fn new(text: &'a [u8], indent: i64, uses_tabs: bool) -> Filler<'a> {
        Filler {
            text,
            indent,
            uses_tabs,
            output: Vec::with_capacity(text.len() + text.len() / 8),
            words: Vec::new(),
            part_bytes: 0,
            column: 0,
            last_columns: 0,
        }
    }

    /// The lines of the paragraph, which ends at `end`; blanks behind it are read before the last
    /// part is filled.
    pub fn fill(mut self, end: usize) -> Vec<u8> {
        let mut at = self.blanks(0, 0).end;
        let mut column = self.indent;
        while at < end {
            (at, column) = self.read_word(at, column);
            if self.words.len() > PART_WORDS_MAX {
                self.put_part(self.words.len() - 1);
            }
        }
        if let Some(last) = self.words.last_mut() {
            last.has_period = true;
            last.ends_sentence = true;
        }
        self.choose(self.words.len());
        self.put(self.words.len());
        self.output
    }

    fn blanks(&mut self, at: usize, column: i64) -> Blanks {
        let found = blanks::from(self.text, at, column);
        self.uses_tabs |= found.has_tab;
        found
    }

    /// Reads the word at a place, and the blanks behind it; where the next one is.
    fn read_word(&mut self, at: usize, column: i64) -> (usize, i64) {
        let text = self.text;
        let (begin, end) = self.word(at);
        let column = column + (end - begin) as i64;
        let behind = self.blanks(end, column);
        let is_last = behind.end >= text.len();
        let ends_line = is_last || text[behind.end] == b'\n';
        let mut word = Word::new(&text[begin..end]);
        word.space = behind.column - column;
        word.ends_sentence = is_last || (word.has_period && (ends_line || word.space > 1));
        if ends_line {
            word.space = if word.ends_sentence { 2 } else { 1 };
        }
        self.words.push(word);
        match ends_line && !is_last {
            true => {
                let before = self.blanks(behind.end + 1, 0);
                (before.end, before.column)
            }
            false => (behind.end, behind.column),
        }
    }

    /// Where a word begins and ends. What precedes it is filled when the part is full; a word that
    /// is too long is put as it is.
    fn word(&mut self, mut begin: usize) -> (usize, usize) {
        let mut at = begin;
        loop {
            if self.part_bytes == PART_BYTES_MAX {
                begin = self.make_room(begin, at);
            }
            self.part_bytes += 1;
            at += 1;
            if self.text.get(at).is_none_or(|byte| is_space(*byte)) {
                return (begin, at);
            }
        }
    }

    fn make_room(&mut self, begin: usize, at: usize) -> usize {
        if !self.words.is_empty() {
            self.put_part(self.words.len());
            return begin;
        }
        self.output.extend_from_slice(&self.text[begin..at]);
        self.part_bytes = 0;
        at
    }

    /// Puts as many lines of the first `count` words as are well ended.
    fn put_part(&mut self, count: usize) {
        self.choose(count);
        let (mut split, mut least) = (count, i64::MAX);
        let mut line = self.words[0].next_line;
        while line != count {
            let next = self.words[line].next_line;
            let cost = self.words[line].cost - self.cost_at(next, count);
            if cost < least {
                (split, least) = (line, cost);
            }
            least = least.saturating_add(LATER_SPLIT_CREDIT);
            line = next;
        }
        self.put(split);
        let put = self.words.drain(..split);
        self.part_bytes -= put.map(|word| word.text.len()).sum::<usize>();
    }

    fn cost_at(&self, line: usize, count: usize) -> i64 {
        if line == count {
            0
        } else {
            self.words[line].cost
        }
    }

    /// Chooses the breaks of the first `count` words, from the last one on.
    fn choose(&mut self, count: usize) {
        for start in (0..count).rev() {
            self.choose_line(start, count);
        }
    }

    /// Chooses the end of the line that begins with a word.
    fn choose_line(&mut self, start: usize, count: usize) {
        let mut best = i64::MAX;
        let mut columns = self.indent + self.words[start].columns();
        let mut next = start + 1;
        loop {
            let mut cost = self.line_cost(next, columns, count) + self.cost_at(next, count);
            if start == 0 && self.last_columns > 0 {
                cost += ragged(columns - self.last_columns);
            }
            if cost < best {
                best = cost;
                self.words[start].next_line = next;
                self.words[start].line_columns = columns;
            }
            if next == count {
                break;
            }
            columns += self.words[next - 1].space + self.words[next].columns();
            if columns >= COLUMNS_MAX {
                break;
            }
            next += 1;
        }
        self.words[start].cost = best + self.break_cost(start);
    }

    fn line_cost(&self, next: usize, columns: i64, count: usize) -> i64 {
        if next == count {
            return 0;
        }
        let cost = unequal(COLUMNS_GOAL - columns);
        match &self.words[next] {
            behind if behind.next_line == count => cost,
            behind => cost + ragged(columns - behind.line_columns),
        }
    }

    /// Of a break before a word.
    fn break_cost(&self, at: usize) -> i64 {
        let first = &self.words[at];
        let cost = LINE + self.cost_behind(at);
        if first.opens() {
            return cost - BRACKET_BONUS;
        }
        match first.ends_sentence {
            true => cost + square(150) / (first.columns() + 2),
            false => cost,
        }
    }

    /// The share of the words before a break.
    fn cost_behind(&self, at: usize) -> i64 {
        let Some(before) = at.checked_sub(1).map(|at| &self.words[at]) else {
            return 0;
        };
        if before.has_period {
            return match before.ends_sentence {
                true => -SENTENCE_BONUS,
                false => BREAK_AFTER_ABBREVIATION,
            };
        }
        if before.is_punctuated() {
            return -PUNCTUATION_BONUS;
        }
        match at > 1 && self.words[at - 2].ends_sentence {
            true => square(200) / (before.columns() + 2),
            false => 0,
        }
    }

    fn put(&mut self, end: usize) {
        let mut line = 0;
        while line != end {
            let next = self.words[line].next_line;
            self.column = 0;
            self.put_space(self.indent);
            for at in line..next {
                let (text, space) = (self.words[at].text, self.words[at].space);
                self.output.extend_from_slice(text);
                self.column += text.len() as i64;
                if at + 1 != next {
                    self.put_space(space);
                }
            }
            self.last_columns = self.column;
            self.output.push(b'\n');
            line = next;
        }
    }

    fn put_space(&mut self, columns: i64) {
        let target = self.column + columns;
        let tabbed = target / TAB_COLUMNS * TAB_COLUMNS;
        if self.uses_tabs && self.column + 1 < tabbed {
            while self.column < tabbed {
                self.output.push(b'\t');
                self.column = blanks::next_stop(self.column);
            }
        }
        let spaces = (target - self.column) as usize;
        self.output.resize(self.output.len() + spaces, b' ');
        self.column = target;
    }
}

/// What ends a word in the C locale.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}
