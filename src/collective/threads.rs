//! Ranks that are threads of one process, for tests.

use std::{
    sync::{Arc, Barrier, Mutex},
    thread,
};

use super::{Collective, Ranks};

/// The values that the ranks exchange, one place for each rank.
#[derive(Debug)]
struct Table {
    places: Mutex<Vec<Vec<f64>>>,
    turn: Barrier,
}

#[derive(Debug)]
struct Thread {
    rank: usize,
    table: Arc<Table>,
}

impl Collective for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.table.places.lock().unwrap().len()
    }

    fn all_gather(&self, mine: &[f64]) -> Vec<f64> {
        let Table { places, turn } = &*self.table;
        places.lock().unwrap()[self.rank] = mine.to_vec();
        turn.wait();
        let all = places.lock().unwrap().concat();
        turn.wait();
        assert_eq!(all.len(), mine.len() * self.size(), "ranks must make the same calls");
        all
    }

    fn all_reduce(&self, values: &mut [f32]) {
        let mine: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let all = self.all_gather(&mine);
        for (at, value) in values.iter_mut().enumerate() {
            *value = all.iter().skip(at).step_by(mine.len()).sum::<f64>() as f32;
        }
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        let Table { places, turn } = &*self.table;
        places.lock().unwrap()[self.rank] = bytes.iter().copied().map(f64::from).collect();
        turn.wait();
        *bytes = places.lock().unwrap()[root].iter().map(|&byte| byte as u8).collect();
        turn.wait();
    }
}

/// The results of `work` on `size` ranks.
pub(crate) fn on_ranks<T: Send>(size: usize, work: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    let table =
        Arc::new(Table { places: Mutex::new(vec![Vec::new(); size]), turn: Barrier::new(size) });
    thread::scope(|scope| {
        let start = |rank| {
            let (table, work) = (Arc::clone(&table), &work);
            // Ranks live as long as the program does.
            scope.spawn(move || work(Ranks::new(Box::leak(Box::new(Thread { rank, table })))))
        };
        let ranks: Vec<_> = (0..size).map(start).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}
