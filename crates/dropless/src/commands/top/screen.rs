//! The screen of `dropless top`: looks at the run ten times a second, follows the keys, and leaves the terminal as it was.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use report::published::{Found, Health, State, is_alive, read, unix_ms};
use report::style::can_redraw;

use super::draw;
use super::history::History;
use crate::run::signals::Interrupt;
use crate::status::find::{self, Target};

/// How often the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub struct Screen {
    /// What the user named.
    pub target: Target,
    /// The list to choose from, while it is shown.
    pub list: Vec<Found>,
    /// The process whose line of the list is marked.
    marked: u32,
    pub shown: Option<Shown>,
    /// Nothing new is shown.
    pub paused: bool,
    /// The keys are shown.
    pub help: bool,
    /// Lines of the body that are above the screen.
    pub scroll: u16,
    /// As many there are at most, as was found while drawing.
    pub scroll_most: Cell<u16>,
}

pub struct Shown {
    path: PathBuf,
    /// What it told last.
    pub state: State,
    /// How well that is by now.
    pub health: Health,
    /// When that was told, by a clock that nobody sets.
    told: Instant,
    pub history: History,
    /// Its process is no more.
    pub gone: bool,
    /// Why what it tells now is not shown.
    pub trouble: Option<String>,
}

/// Runs until `q`; the result is the exit code.
pub fn run(target: Target) -> Result<u8> {
    ensure!(
        std::io::stdout().is_terminal(),
        "standard output is not a terminal; use --once for text, or --json"
    );
    ensure!(
        can_redraw(),
        "this terminal cannot be drawn on (TERM is dumb, or not set); use --once for text, or --json"
    );
    let mut screen = Screen::new(target)?;
    let interrupt = Interrupt::install()?;
    end_with_terminal()?;
    // From here on a panic, too, leaves the terminal as it was.
    let mut terminal = ratatui::try_init()?;
    let result = (|| -> Result<()> {
        while !interrupt.is_set() {
            screen.look();
            terminal.draw(|frame| draw::draw(frame, &screen))?;
            if event::poll(LOOK_EVERY)? && screen.follow(&event::read()?) {
                break;
            }
        }
        Ok(())
    })();
    ratatui::restore();
    result.map(|()| 0)
}

/// Ends the process when its terminal has gone: crossterm reads a dead one for ever, and nobody looks.
fn end_with_terminal() -> std::io::Result<()> {
    let watch = || {
        while std::io::stdout().is_terminal() {
            std::thread::sleep(LOOK_EVERY);
        }
        std::process::exit(0);
    };
    std::thread::Builder::new()
        .name("terminal".into())
        .spawn(watch)
        .map(drop)
}

impl Screen {
    fn new(target: Target) -> Result<Self> {
        let mut list = find::all(&target);
        if list.is_empty() {
            bail!("{}", find::nothing(&target));
        }
        let shown = if list.len() == 1 {
            let found = list.remove(0);
            let process = found.process;
            let named = |reason: String| anyhow::anyhow!("process {process}: {reason}");
            Some(Shown::new(found).map_err(named)?)
        } else {
            None
        };
        Ok(Self {
            target,
            marked: list.first().map_or(0, |found| found.process),
            list,
            shown,
            paused: false,
            help: false,
            scroll: 0,
            scroll_most: Cell::new(0),
        })
    }

    fn look(&mut self) {
        match &mut self.shown {
            Some(shown) if !self.paused => shown.look(),
            Some(_) => {}
            None => {
                let list = find::all(&self.target);
                self.renew(list);
            }
        }
    }

    /// The line of the list that is marked.
    pub fn mark(&self) -> usize {
        let is_marked = |found: &Found| found.process == self.marked;
        self.list.iter().position(is_marked).unwrap_or(0)
    }

    /// Takes in who runs now. The mark stays with its process, and where that has gone, in its line.
    fn renew(&mut self, list: Vec<Found>) {
        let at = self.mark();
        self.list = list;
        if self.list.iter().all(|found| found.process != self.marked) {
            self.mark_line(at);
        }
    }

    fn mark_line(&mut self, at: usize) {
        let last = self.list.len().saturating_sub(1);
        self.marked = self.list.get(at.min(last)).map_or(0, |found| found.process);
    }

    /// Does what a key asks for; true ends it.
    fn follow(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else { return false };
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Char('p' | ' ') if self.shown.is_some() => self.paused = !self.paused,
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Up => self.go(-1),
            KeyCode::Down => self.go(1),
            KeyCode::Enter | KeyCode::Right if self.shown.is_none() => self.choose(),
            KeyCode::Left | KeyCode::Esc if self.shown.is_some() => self.back(),
            _ => {}
        }
        false
    }

    fn go(&mut self, step: i16) {
        if self.shown.is_some() {
            self.scroll = self
                .scroll
                .saturating_add_signed(step)
                .min(self.scroll_most.get());
        } else {
            self.mark_line(self.mark().saturating_add_signed(step.into()));
        }
    }

    fn choose(&mut self) {
        if !self.list.is_empty() {
            // One that cannot be read stays in the list, with the reason.
            self.shown = Shown::new(self.list.remove(self.mark())).ok();
            self.scroll = 0;
        }
    }

    fn back(&mut self) {
        // What was named alone has no list behind it.
        if self.target == Target::Only || find::all(&self.target).len() > 1 {
            self.shown = None;
            self.paused = false;
        }
    }
}

impl Shown {
    fn new(found: Found) -> Result<Self, String> {
        let state = found.state.map_err(|refusal| refusal.to_string())?;
        let mut history = History::default();
        history.add(&state);
        let (age, now) = (state.age(unix_ms()), Instant::now());
        Ok(Self {
            path: found.path,
            gone: !found.alive,
            health: state.health_by_now(age),
            told: age.and_then(|age| now.checked_sub(age)).unwrap_or(now),
            state,
            history,
            trouble: None,
        })
    }

    /// Takes in what the run tells now. What it told last stays, whatever becomes of it.
    fn look(&mut self) {
        // In this order: the last words of a process that ends between the two are not overlooked.
        self.gone = !is_alive(&self.state.process);
        match read(&self.path) {
            Ok(state) if state.process.started_ticks == self.state.process.started_ticks => {
                if state.sequence != self.state.sequence {
                    self.told = Instant::now();
                }
                self.state = state;
                self.trouble = None;
                if self.state.ended.is_none() {
                    self.history.add(&self.state);
                }
            }
            Ok(_) => self.gone = true,
            Err(_) if self.gone => {}
            Err(refusal) => self.trouble = Some(refusal.to_string()),
        }
        self.health = self.state.health_by_now(Some(self.told.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use report::published::{Phase, Place, Process};

    use super::*;

    fn running(processes: std::ops::Range<u32>) -> Vec<Found> {
        let found = |process| Found {
            process,
            path: PathBuf::new(),
            state: Ok(State::default()),
            alive: true,
        };
        processes.map(found).collect()
    }

    #[test]
    fn the_mark_stays_with_its_process_and_in_sight() {
        let mut screen = Screen {
            target: Target::Only,
            list: running(100..130),
            marked: 100,
            shown: None,
            paused: false,
            help: false,
            scroll: 0,
            scroll_most: Cell::new(0),
        };
        let text = |screen: &Screen| {
            let backend = ratatui::backend::TestBackend::new(80, 24);
            let mut terminal = ratatui::Terminal::new(backend).expect("memory");
            terminal.draw(|frame| draw::draw(frame, screen)).expect("memory");
            let rows = terminal.backend().buffer().content.chunks(80);
            let row = |cells: &[ratatui::buffer::Cell]| {
                cells
                    .iter()
                    .map(ratatui::buffer::Cell::symbol)
                    .collect::<String>()
            };
            rows.map(row).collect::<Vec<_>>().join("\n")
        };
        let press = |screen: &mut Screen, code: KeyCode| screen.follow(&Event::Key(code.into()));
        assert!(text(&screen).contains("Runs, 1 of 30") && !text(&screen).contains("  129  "));
        for _ in 0..25 {
            press(&mut screen, KeyCode::Down);
        }
        assert!(text(&screen).contains("  125  "), "{}", text(&screen));
        // Some that stood above end.
        screen.renew(running(110..130));
        assert_eq!((screen.marked, screen.mark()), (125, 15));
        assert!(text(&screen).starts_with("Runs  "), "{}", text(&screen));
        // Its own process ends: the mark stays in its line.
        screen.renew(running(110..120));
        assert_eq!((screen.marked, screen.mark()), (119, 9));
        press(&mut screen, KeyCode::Char('p'));
        assert!(!screen.paused, "a list goes on");
        screen.renew(Vec::new());
        press(&mut screen, KeyCode::Up);
        screen.renew(running(7..9));
        assert_eq!(screen.marked, 7);
    }

    /// Whatever the clock of the machine says meanwhile.
    #[test]
    fn a_run_that_tells_nothing_more_is_not_well() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = Place::at(dir.path());
        let publisher = place.publisher().expect("a publisher");
        let mut state = State {
            process: Process::this("send", "0"),
            phase: Phase::Sending,
            sequence: 1,
            told_unix_ms: unix_ms() + 3_600_000,
            ..State::default()
        };
        state.health.healthy = true;
        publisher.publish(&state).expect("room");
        let mut shown = Shown::new(place.look(state.process.id)).expect("a run");
        shown.look();
        assert!(shown.health.healthy, "it was seen just now: {:?}", shown.health);
        shown.told = Instant::now()
            .checked_sub(Duration::from_secs(9))
            .expect("a past");
        shown.look();
        assert!(!shown.health.healthy && shown.health.reason.contains("no status for 9 s"));
        state.sequence += 1;
        publisher.publish(&state).expect("room");
        shown.look();
        assert!(shown.health.healthy, "{:?}", shown.health);
    }
}
