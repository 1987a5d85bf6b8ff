// What the check must refuse: where it would not, tsc says that the directive was not needed.
import type { AnyDashboard, PanelOf } from './types.js';

type Panel = PanelOf<'timeseries'>;

const legend: Panel['options']['legend'] = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] };
const tooltip: Panel['options']['tooltip'] = { mode: 'multi', sort: 'desc' };
const common: Omit<Panel, 'options' | 'fieldConfig'> = {
  id: 1,
  type: 'timeseries',
  title: 'any',
  datasource: { type: 'prometheus', uid: 'any' },
  gridPos: { x: 0, y: 0, w: 1, h: 1 },
  targets: [],
};
const options: Panel['options'] = { legend, tooltip };

export const sound: Panel = { ...common, options, fieldConfig: { defaults: { unit: 's' }, overrides: [] } };
export const unitMissing: Panel = {
  ...common,
  options,
  // @ts-expect-error every panel has a unit
  fieldConfig: { defaults: {}, overrides: [] },
};
export const unknownPlacement: Panel = {
  ...common,
  // @ts-expect-error a legend is at the bottom or on the right
  options: { tooltip, legend: { ...legend, placement: 'above' } },
  fieldConfig: { defaults: { unit: 's' }, overrides: [] },
};
export const unknownStyle: Panel = {
  ...common,
  options,
  // @ts-expect-error there is no such style
  fieldConfig: { defaults: { unit: 's', custom: { drawStyle: 'pie' } }, overrides: [] },
};
export const misspelt: Panel = {
  ...common,
  options,
  // @ts-expect-error nothing has this name
  fieldConfig: { defaults: { unit: 's', custom: { fillOpaqueness: 3 } }, overrides: [] },
};
// @ts-expect-error no version of the schema
export const versionMissing: AnyDashboard = { title: 'any', uid: 'any', panels: [] };
