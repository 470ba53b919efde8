//! Functions in layers: each beneath those that spawn it.
//!
//! It does not know how layers are drawn. Read next: `chart`.

use std::collections::BTreeMap;

/// The layer of each of the first `count` functions, from 0: one more than the lowest of those that
/// spawn it. Spawns that close a circle do not count.
pub fn layers(edges: &BTreeMap<(usize, usize), u64>, count: usize) -> Vec<usize> {
    let mut spawned_by: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut spawns: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in edges
        .keys()
        .filter(|(from, to)| *from < count && *to < count)
    {
        spawns[*from].push(*to);
        spawned_by[*to].push(*from);
    }
    let mut walk = Walk {
        spawns,
        order: Vec::new(),
        steps: vec![Seen::No; count],
        forward: Vec::new(),
    };
    let is_top = |place: &usize| spawned_by[*place].iter().all(|from| from == place);
    let tops = (0..count).filter(is_top);
    for place in tops.chain(0..count) {
        walk.visit(place);
    }
    let mut layers = vec![0; count];
    // Each function comes before all that it spawns, but for circles.
    for from in walk.order.iter().rev() {
        for (_, to) in walk.forward.iter().filter(|(one, _)| one == from) {
            layers[*to] = layers[*to].max(layers[*from] + 1);
        }
    }
    layers
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    No,
    /// It is being visited: a spawn of it closes a circle.
    Open,
    Done,
}

/// A walk in depth over few functions.
#[derive(Debug)]
struct Walk {
    spawns: Vec<Vec<usize>>,
    /// In the order in which they were done.
    order: Vec<usize>,
    steps: Vec<Seen>,
    /// The spawns that close no circle.
    forward: Vec<(usize, usize)>,
}

impl Walk {
    fn visit(&mut self, place: usize) {
        if self.steps[place] != Seen::No {
            return;
        }
        self.steps[place] = Seen::Open;
        for to in std::mem::take(&mut self.spawns[place]) {
            if self.steps[to] != Seen::Open {
                self.forward.push((place, to));
                self.visit(to);
            }
        }
        self.steps[place] = Seen::Done;
        self.order.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_stands_beneath_all_that_spawn_it() {
        // 0 spawns 1 and 3, 1 spawns 2, 2 spawns 3; 3 spawns itself, and 1 again.
        let edges = [(0, 1), (0, 3), (1, 2), (2, 3), (3, 3), (3, 1)];
        let edges = edges.into_iter().map(|edge| (edge, 1)).collect();
        assert_eq!(layers(&edges, 4), [0, 1, 2, 3]);
    }

    #[test]
    fn functions_in_a_circle_have_layers_too() {
        let edges = BTreeMap::from([((0, 1), 1), ((1, 0), 1), ((5, 0), 1)]);
        assert_eq!(layers(&edges, 2), [0, 1]);
    }
}
