// What a dashboard's JSON may be: Grafana's own types, with their enumerations as the texts that JSON has for them.
import type { AnnotationQuery, Dashboard, DataSourceRef, Panel, RowPanel } from '@grafana/schema';
import type * as gauge from '@grafana/schema/dist/types/raw/composable/gauge/panelcfg/x/GaugePanelCfg_types.gen.d.ts';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts';
import type * as timeline from '@grafana/schema/dist/types/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen.d.ts';
import type * as table from '@grafana/schema/dist/types/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen.d.ts';
import type * as timeseries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts';

type Written<T> = T extends string
  ? `${T}`
  : T extends (infer E)[]
    ? Written<E>[]
    : T extends object
      ? { [K in keyof T]: Written<T[K]> }
      : T;

/** A query of the data source Prometheus, whose type is not in the package. */
interface Query {
  refId: string;
  datasource: DataSourceRef;
  editorMode: 'code' | 'builder';
  expr: string;
  legendFormat: string;
  format: 'time_series' | 'table' | 'heatmap';
  range: boolean;
  instant: boolean;
}

interface Plain {}

interface Kinds {
  timeseries: { options: timeseries.Options; custom: timeseries.FieldConfig };
  stat: { options: stat.Options; custom: Plain };
  gauge: { options: gauge.Options; custom: Plain };
  'state-timeline': { options: timeline.Options; custom: timeline.FieldConfig };
  // The panel's own defaults fill in what its field options leave out.
  table: { options: table.Options; custom: Partial<table.FieldConfig> };
}

type FieldConfig = NonNullable<Panel['fieldConfig']>;

type Drawn<K extends keyof Kinds> = Written<
  Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'title' | 'datasource' | 'gridPos' | 'id'> & {
    type: K;
    id: number;
    title: string;
    datasource: DataSourceRef;
    gridPos: NonNullable<Panel['gridPos']>;
    options: Kinds[K]['options'];
    targets: Query[];
    fieldConfig: {
      defaults: Omit<FieldConfig['defaults'], 'custom' | 'unit'> & { unit: string; custom?: Kinds[K]['custom'] };
      overrides: FieldConfig['overrides'];
    };
  }
>;

export type PanelOf<K extends keyof Kinds | 'row'> = K extends keyof Kinds ? Drawn<K> : Written<RowPanel>;

export type AnyDashboard = Written<Dashboard> & { title: string; uid: string };

/** Prometheus's annotations: what its plug-in for Grafana reads. */
export type Trials = Written<Omit<AnnotationQuery, 'target'>> & {
  target: { refId: string; expr: string; interval: string };
  titleFormat: string;
  textFormat: string;
  tagKeys: string;
  useValueForTime: boolean;
};
