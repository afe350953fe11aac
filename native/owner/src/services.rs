//! All services of the process, by name and by number.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::process_state::Shared;
use crate::service_state::ServiceState;

struct Table {
    by_name: HashMap<Box<str>, Arc<ServiceState>>,
    list: Arc<[Arc<ServiceState>]>,
}

/// Services are never removed, only undefined: their names come from configuration and from the
/// coordinator.
pub(crate) struct Services {
    table: RwLock<Table>,
    shared: Arc<Shared>,
}

impl Services {
    pub fn new(shared: &Arc<Shared>) -> Services {
        let table = Table {
            by_name: HashMap::new(),
            list: Arc::from([]),
        };
        Services {
            table: RwLock::new(table),
            shared: Arc::clone(shared),
        }
    }

    /// Made when new.
    pub fn named(&self, name: &str) -> Arc<ServiceState> {
        if let Some(service) = self.find(name) {
            return service;
        }
        let table = &mut *self.table.write();
        if let Some(service) = table.by_name.get(name) {
            return Arc::clone(service);
        }
        let id = u32::try_from(table.list.len()).unwrap_or(u32::MAX);
        let service = Arc::new(ServiceState::new(id, name, &self.shared));
        table.by_name.insert(name.into(), Arc::clone(&service));
        table.list = table.list.iter().chain([&service]).cloned().collect();
        service
    }

    pub fn find(&self, name: &str) -> Option<Arc<ServiceState>> {
        self.table.read().by_name.get(name).cloned()
    }

    pub fn get(&self, id: u32) -> Option<Arc<ServiceState>> {
        self.table.read().list.get(id as usize).cloned()
    }

    pub fn all(&self) -> Arc<[Arc<ServiceState>]> {
        Arc::clone(&self.table.read().list)
    }
}
