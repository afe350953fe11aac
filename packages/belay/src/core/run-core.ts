export async function runCore(_: unknown): Promise<number> { return 0; }
