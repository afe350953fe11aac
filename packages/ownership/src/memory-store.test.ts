import { testStoreContract } from "../../testkit/src/store-contract.ts";
import { countingRandom } from "./coordinator/coordinator-bed.test.ts";
import { MemoryStore } from "./memory-store.ts";

testStoreContract("memory", { create: () => new MemoryStore(countingRandom()), reopen: undefined });
