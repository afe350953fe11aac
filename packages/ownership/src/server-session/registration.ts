/** Where a session stands with the coordinator. */
export type Phase =
  /** No incarnation; a Register is sent whenever there is a connection. */
  | "registering"
  | "registered"
  /** Leave is said as soon as there is a connection. */
  | "leaving"
  | "ended"
  /** The registration was refused for good. */
  | "refused";

export type PhaseEvent = "connected" | "registered" | "expired" | "leave" | "ended" | "refused";

/** What each phase makes of each event; the compiler refuses an unanswered pair. */
export const PHASE_TABLE: Readonly<Record<Phase, Readonly<Record<PhaseEvent, Phase>>>> = {
  registering: {
    connected: "registering",
    registered: "registered",
    expired: "registering",
    leave: "ended",
    ended: "ended",
    refused: "refused",
  },
  registered: {
    connected: "registered",
    registered: "registered",
    expired: "registering",
    leave: "leaving",
    ended: "ended",
    refused: "registered",
  },
  leaving: {
    connected: "leaving",
    registered: "leaving",
    expired: "ended",
    leave: "leaving",
    ended: "ended",
    refused: "leaving",
  },
  ended: {
    connected: "ended",
    registered: "ended",
    expired: "ended",
    leave: "ended",
    ended: "ended",
    refused: "ended",
  },
  refused: {
    connected: "refused",
    registered: "refused",
    expired: "refused",
    leave: "ended",
    ended: "ended",
    refused: "refused",
  },
};
