//! The hosts that the workers' LB policies hold (A4).

use std::collections::{BTreeMap, HashMap};

/// Agreement of all workers, per service.
#[derive(Debug)]
pub(crate) struct Hosts {
    workers: usize,
    services: HashMap<u32, ServiceHosts>,
}

#[derive(Debug, Default)]
struct ServiceHosts {
    by_worker: BTreeMap<u64, Vec<String>>,
    reported: Option<Vec<String>>,
}

impl Hosts {
    /// `workers`: how many must report; 0: as many as did.
    pub fn new(workers: u32) -> Hosts {
        Hosts {
            workers: workers as usize,
            services: HashMap::new(),
        }
    }

    /// `true` when there is something new to report.
    pub fn set(&mut self, service: u32, worker: u64, addresses: &[&str]) -> bool {
        let mut addresses: Vec<String> = addresses
            .iter()
            .map(|address| (*address).to_owned())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        self.services
            .entry(service)
            .or_default()
            .by_worker
            .insert(worker, addresses);
        self.agreed(service).is_some()
    }

    /// `true` when there is something new to report.
    pub fn remove(&mut self, service: u32, worker: u64) -> bool {
        if let Some(hosts) = self.services.get_mut(&service) {
            hosts.by_worker.remove(&worker);
        }
        self.agreed(service).is_some()
    }

    /// What all workers hold, if that was not reported yet; counts as reported now.
    pub fn take_report(&mut self, service: u32) -> Option<Vec<String>> {
        let report = self.agreed(service)?.clone();
        self.services.entry(service).or_default().reported = Some(report.clone());
        Some(report)
    }

    /// The coordinator did not know the service until now.
    pub fn forget_report(&mut self, service: u32) {
        if let Some(hosts) = self.services.get_mut(&service) {
            hosts.reported = None;
        }
    }

    /// A new session knows nothing.
    pub fn forget_reports(&mut self) -> Vec<u32> {
        for hosts in self.services.values_mut() {
            hosts.reported = None;
        }
        self.services.keys().copied().collect()
    }

    fn agreed(&self, service: u32) -> Option<&Vec<String>> {
        let hosts = self.services.get(&service)?;
        let mut sets = hosts.by_worker.values();
        let first = sets.next()?;
        let all = hosts.by_worker.len() >= self.workers.max(1) && sets.all(|set| set == first);
        (all && hosts.reported.as_ref() != Some(first)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a4_reported_once_all_workers_agree() {
        let mut hosts = Hosts::new(2);
        assert!(!hosts.set(0, 1, &["b:1", "a:1"]));
        assert!(hosts.set(0, 2, &["a:1", "b:1"]));
        assert_eq!(
            hosts.take_report(0),
            Some(vec!["a:1".to_owned(), "b:1".to_owned()])
        );
        assert_eq!(hosts.take_report(0), None);
        assert!(!hosts.set(0, 1, &["a:1"]));
        assert!(hosts.set(0, 2, &["a:1"]));
        // A replaced LB policy: the old one leaves after the new ones came.
        assert!(!hosts.set(0, 3, &[]));
        assert!(hosts.remove(0, 3));
        assert_eq!(hosts.take_report(0), Some(vec!["a:1".to_owned()]));
        assert_eq!(hosts.forget_reports(), [0]);
        assert!(hosts.take_report(0).is_some());
    }
}
