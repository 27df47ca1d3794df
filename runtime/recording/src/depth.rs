//! Joins depth differences to snapshots while a recording is decoded, so that the cache contains
//! only complete books. A book is missing before the first snapshot, and after a gap until the next
//! snapshot.

use windvane_model::{MarketEvent, Surface};
use windvane_protocol::{
    BookLevels, DepthDiff, DepthSnapshot, DiffIds, DiffStep, Number, SnapshotStep,
};

use super::decoding::{At, Decoding, OwnedSnapshot, Refused, event_time};
use super::listing::{Held, Listed};

/// The instrument to which a depth snapshot belongs.
enum Owner {
    Instrument(usize),
    /// Not known yet: no frame so far has a matching instrument.
    Later,
    Unclear,
}

impl Decoding {
    pub(super) fn depth(
        &mut self,
        at: At,
        surface: Surface,
        diff: &DepthDiff<'_>,
        levels: &BookLevels,
    ) -> Result<(), Refused> {
        let index = self.listing.index(surface, diff.symbol);
        let time = event_time(diff.transaction_ms, diff.event_ms);
        let listed = self.listing.at(index);
        listed.delay(at.recv, time);
        if !listed.has_diffs {
            listed.has_diffs = true;
            self.join_early(at, index)?;
        }
        let listed = self.listing.at(index);
        let step = listed.joiner.on_diff(diff.ids);
        match step {
            DiffStep::Apply => return self.apply(at, time, index, diff.ids.last, levels),
            DiffStep::Drop => {
                listed.survey.depths_unused += 1;
                return Ok(());
            }
            DiffStep::Buffer | DiffStep::Gap => {}
        }
        let held = Held {
            line: at.line,
            event_time: time,
            levels: levels.clone(),
        };
        listed.survey.depths_unused += 1;
        listed.waiting.push(diff.ids, held);
        if step == DiffStep::Gap {
            self.gap(at, index, diff.ids)?;
        }
        Ok(())
    }

    pub(super) fn snapshot(
        &mut self,
        at: At,
        surface: Option<Surface>,
        snapshot: &DepthSnapshot<'_>,
        levels: &BookLevels,
    ) -> Result<(), Refused> {
        let index = match self.owner(surface, snapshot, levels) {
            Owner::Instrument(index) => index,
            Owner::Later if self.early.is_none() => {
                let owned = OwnedSnapshot {
                    last_update_id: snapshot.last_update_id,
                    levels: levels.clone(),
                };
                self.early = Some((at, owned));
                return Ok(());
            }
            Owner::Later | Owner::Unclear => {
                let reason = || "it carries no symbol and fits none".to_owned();
                self.survey.unassigned.add(at.line, reason);
                return Ok(());
            }
        };
        let time = event_time(snapshot.transaction_ms, snapshot.event_ms);
        let listed = self.listing.at(index);
        if snapshot.partial {
            // It contains only the best levels, so it is used only without differences.
            if listed.has_diffs {
                listed.survey.depths_unused += 1;
                return Ok(());
            }
            listed.delay(at.recv, time);
            return self.replace(at, time, index, snapshot.last_update_id, levels);
        }
        self.join(at, time, index, snapshot.last_update_id, levels)
    }

    /// Joins a snapshot that arrived before the first frame of its instrument.
    fn join_early(&mut self, at: At, index: usize) -> Result<(), Refused> {
        let is_near = |early: &OwnedSnapshot, listed: &Listed| listed.is_near(best(&early.levels));
        let Some((taken, early)) = self.early.take() else {
            return Ok(());
        };
        if !is_near(&early, self.listing.at(index)) {
            self.early = Some((taken, early));
            return Ok(());
        }
        self.join(at, 0, index, early.last_update_id, &early.levels)
    }

    /// Starts the book from a snapshot and applies the differences that waited for it.
    fn join(
        &mut self,
        at: At,
        time: i64,
        index: usize,
        last_update_id: i64,
        levels: &BookLevels,
    ) -> Result<(), Refused> {
        let listed = self.listing.at(index);
        if listed.joiner.on_snapshot(last_update_id) == SnapshotStep::Drop {
            return Ok(());
        }
        let waiting = listed.waiting.take();
        self.replace(at, time, index, last_update_id, levels)?;
        for (ids, held) in waiting {
            let listed = self.listing.at(index);
            match listed.joiner.on_diff(ids) {
                DiffStep::Apply => {
                    listed.survey.depths_unused -= 1;
                    self.apply(at, held.event_time, index, ids.last, &held.levels)?;
                }
                DiffStep::Drop => {}
                DiffStep::Buffer => listed.waiting.push(ids, held),
                DiffStep::Gap => {
                    let line = held.line;
                    listed.waiting.push(ids, held);
                    self.gap(At { line, ..at }, index, ids)?;
                }
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        at: At,
        time: i64,
        index: usize,
        update_id: i64,
        levels: &BookLevels,
    ) -> Result<(), Refused> {
        self.listing.at(index).survey.depths += 1;
        self.book(at, time, index, update_id, levels, false)
    }

    fn replace(
        &mut self,
        at: At,
        time: i64,
        index: usize,
        update_id: i64,
        levels: &BookLevels,
    ) -> Result<(), Refused> {
        let listed = self.listing.at(index);
        listed.survey.snapshots += 1;
        listed.last_price = best(levels).or(listed.last_price);
        self.book(at, time, index, update_id, levels, true)
    }

    fn book(
        &mut self,
        at: At,
        time: i64,
        index: usize,
        update_id: i64,
        levels: &BookLevels,
        is_snapshot: bool,
    ) -> Result<(), Refused> {
        self.chunking
            .fit(index, levels.price_scale(), levels.qty_scale())?;
        let start = self.chunking.levels(index, levels)?;
        let event = MarketEvent::Depth {
            update_id,
            snapshot: is_snapshot,
            bids: levels.bids(),
            asks: levels.asks(),
        };
        self.emit(at, time, index, &event, start)
    }

    fn gap(&mut self, at: At, index: usize, ids: DiffIds) -> Result<(), Refused> {
        let DiffIds {
            first,
            last,
            previous,
        } = ids;
        let reason = || match previous {
            Some(previous) => {
                format!("U {first}, u {last}, pu {previous} do not continue the book")
            }
            None => format!("U {first}, u {last} do not continue the book"),
        };
        self.listing.at(index).survey.gaps.add(at.line, reason);
        self.chunking.fit(index, 0, 0)?;
        self.emit(at, 0, index, &MarketEvent::Gap, 0)
    }

    /// Finds the instrument of a snapshot. A REST response contains no symbol. It belongs to the
    /// instrument with a depth stream and a similar price. If there are several, it belongs to the
    /// one whose waiting ids enclose its id.
    fn owner(
        &mut self,
        surface: Option<Surface>,
        snapshot: &DepthSnapshot<'_>,
        levels: &BookLevels,
    ) -> Owner {
        if let Some(symbol) = snapshot.symbol {
            return Owner::Instrument(self.named_owner(surface, &symbol.to_ascii_uppercase()));
        }
        let price = best(levels);
        let id = snapshot.last_update_id;
        let of_surface = |listed: &Listed| surface.is_none_or(|s| s == listed.survey.surface);
        let all = self.listing.all();
        let fits = |&index: &usize| of_surface(&all[index]) && all[index].is_near(price);
        let near: Vec<usize> = (0..all.len()).filter(fits).collect();
        let with_diffs = |&index: &usize| all[index].has_diffs;
        let joinable: Vec<usize> = near.iter().copied().filter(with_diffs).collect();
        let encloses = |&index: &usize| all[index].waiting.encloses(id);
        match (joinable[..].as_ref(), near[..].as_ref()) {
            ([index], _) | ([], [index]) => Owner::Instrument(*index),
            ([], _) => Owner::Later,
            (several, _) => {
                let mut enclosing = several.iter().copied().filter(encloses);
                match (enclosing.next(), enclosing.next()) {
                    (Some(index), None) => Owner::Instrument(index),
                    _ => Owner::Unclear,
                }
            }
        }
    }

    /// The keys of a snapshot rarely show its surface, so a known instrument with this symbol is
    /// preferred.
    fn named_owner(&mut self, surface: Option<Surface>, symbol: &str) -> usize {
        let known = self.listing.all().iter().position(|listed| {
            listed.survey.symbol == symbol && surface.is_none_or(|s| s == listed.survey.surface)
        });
        known.unwrap_or_else(|| self.listing.index(surface.unwrap_or(self.surface), symbol))
    }
}

fn best(levels: &BookLevels) -> Option<Number> {
    levels.bids().first().map(|level| Number {
        mantissa: level.price,
        scale: levels.price_scale(),
    })
}
