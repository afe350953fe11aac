//! The machine on virtual time, without a socket.

mod consistency;
mod harness;
mod hit_cost;
mod lease;
mod mint;
mod moves;
mod resolve;
mod session;
