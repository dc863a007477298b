//! Which chains can be written out in the place of a jump to them.

use super::super::conditions::{Conditions, Unfit};
use super::super::ruleset::{Chain, Meant, Target};
use super::walk::Walk;

/// Chains that jump into each other so deep.
const DEPTH_MAX: usize = 16;

impl<'r> Walk<'r> {
    pub fn chain(&self, table: &str, name: &str) -> Option<&'r Chain> {
        let is_it = |chain: &&Chain| chain.table == table && chain.name == name;
        self.set.chains.iter().find(is_it)
    }

    /// Whether a chain can be written out in the place of a jump to it; how deep it jumps.
    pub fn simple(&mut self, table: &str, name: &str) -> Result<usize, String> {
        let key = (table.to_owned(), name.to_owned());
        if let Some(found) = self.simple.get(&key) {
            return found.clone();
        }
        // Until that is known: who comes here again goes in a circle.
        let circle = format!("chain {name} jumps to itself");
        self.simple.insert(key.clone(), Err(circle));
        let found = self.look_at(table, name);
        self.simple.insert(key, found.clone());
        found
    }

    fn look_at(&mut self, table: &str, name: &str) -> Result<usize, String> {
        let chain = self
            .chain(table, name)
            .ok_or_else(|| format!("there is no chain {name}"))?;
        let mut depth = 0;
        for rule in &chain.rules {
            let parts = match &rule.parts {
                Ok(parts) => parts,
                Err(Unfit::Why(_)) if rule.meant == Meant::Elsewhere => {
                    return Err(format!(
                        "chain {name} goes elsewhere on a condition that cannot be taken over ({})",
                        rule.place
                    ));
                }
                Err(_) => continue,
            };
            for part in parts {
                match &part.then {
                    Target::Decide(_) => {}
                    Target::Return if part.when == Conditions::default() => return Ok(depth),
                    Target::Return => {
                        return Err(format!("chain {name} returns on a condition ({})", rule.place));
                    }
                    Target::Goto(_) => return Err(format!("chain {name} has a goto ({})", rule.place)),
                    Target::Limit(_) => return Err(format!("chain {name} limits a rate ({})", rule.place)),
                    Target::Jump(next) => depth = depth.max(self.simple(table, next)? + 1),
                }
            }
        }
        if depth > DEPTH_MAX {
            return Err(format!("chains jump into each other more than {DEPTH_MAX} deep"));
        }
        Ok(depth)
    }
}
