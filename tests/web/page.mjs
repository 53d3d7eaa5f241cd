// SPDX-License-Identifier: MIT
// The page in a real browser, opened from the disk. Prints what is wrong, what was measured, and a count;
// leaves screenshots. Usage: node tests/web/page.mjs KNEE PAGE.html OUT_FOLDER [PART...]
import { browser, tally } from "./browser.mjs";

const parts = process.argv.length > 5 ? process.argv.slice(5) : ["calculators", "traces", "runs", "delights", "reports", "comfort", "newcomer"];
for (const part of parts) await import(`./${part}.mjs`);
await browser.close();
console.log(`${tally.checks} checks, ${tally.failures} failures`);
process.exit(tally.failures ? 1 : 0);
