// Writes generated.ts: every dashboard of a folder, and every panel by its kind, as typed constants for tsc.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const [folder] = process.argv.slice(2);
const lines = ["import type { AnyDashboard, PanelOf, Trials } from './types.js';"];
for (const name of readdirSync(folder).filter((each) => each.endsWith('.json')).sort()) {
  const dashboard = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const label = basename(name, '.json');
  for (const panel of dashboard.panels) {
    const kind = JSON.stringify(panel.type);
    lines.push(`export const ${label}_${panel.id}: PanelOf<${kind}> = ${JSON.stringify(panel, null, 1)};`);
  }
  // The schema knows annotations of Grafana's own store only: those from Prometheus have their own type here.
  const all = dashboard.annotations.list;
  const own = all.filter((each) => each.builtIn === 1);
  const trials = all.filter((each) => each.builtIn !== 1);
  lines.push(`export const ${label}_trials: Trials[] = ${JSON.stringify(trials, null, 1)};`);
  const whole = { ...dashboard, annotations: { ...dashboard.annotations, list: own } };
  lines.push(`export const ${label}: AnyDashboard = ${JSON.stringify(whole, null, 1)};`);
}
writeFileSync('generated.ts', lines.join('\n') + '\n');
