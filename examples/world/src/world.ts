/** What a player has. Lives in the memory of the server that owns the player, nowhere else. */
export interface Player {
  count: number;
  x: number;
  y: number;
}

/** The players of this server. */
export class World {
  readonly #players = new Map<string, Player>();

  get size(): number {
    return this.#players.size;
  }

  /** The player, created at the first look. */
  player(name: string): Player {
    let player = this.#players.get(name);
    if (player === undefined) {
      player = { count: 0, x: 0, y: 0 };
      this.#players.set(name, player);
    }
    return player;
  }

  forget(name: string): void {
    this.#players.delete(name);
  }

  count(name: string): Player {
    const player = this.player(name);
    player.count += 1;
    return player;
  }

  move(name: string, dx: number, dy: number): Player {
    const player = this.player(name);
    player.x += dx;
    player.y += dy;
    return player;
  }
}
