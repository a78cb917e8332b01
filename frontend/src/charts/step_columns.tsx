import { BarChart } from 'echarts/charts';
import { GridComponent, TooltipComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { type ReactNode, useEffect, useRef } from 'react';
import { colourOf } from '../core/colour';
import { duration, tick } from '../core/format';
import './charts.css';

echarts.use([BarChart, GridComponent, TooltipComponent, CanvasRenderer]);

export interface StepColumn {
  readonly number: number;
  readonly name: string;
  readonly partsNs: readonly number[];
}

export interface StepColumnsProps {
  readonly steps: readonly StepColumn[];
  readonly categories: readonly { readonly id: string; readonly label: string }[];
  readonly selected: number | null;
  readonly onSelect: (step: number | null) => void;
  /** Colours are read anew when this changes. */
  readonly theme: string;
}

interface Hover {
  readonly dataIndex: number;
}

function cssVariable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The hovered step as text nodes: names come from the trace and are never set as HTML. */
function tooltipOf(props: StepColumnsProps, at: number): HTMLElement {
  const box = document.createElement('div');
  const step = props.steps[at];
  if (!step) return box;
  const line = (label: string, value: number, colour: string | null): void => {
    const row = box.appendChild(document.createElement('div'));
    row.className = 'chart-tip-row';
    const swatch = row.appendChild(document.createElement('span'));
    swatch.className = 'swatch';
    swatch.style.background = colour ?? 'transparent';
    row.appendChild(document.createElement('span')).textContent = label;
    row.appendChild(document.createElement('b')).textContent = duration(value);
  };
  line(
    step.name,
    step.partsNs.reduce((sum, part) => sum + part, 0),
    null,
  );
  props.categories.forEach((category, part) => {
    const value = step.partsNs[part] ?? 0;
    if (value > 0) line(category.label, value, colourOf(category.id));
  });
  return box;
}

function optionsOf(props: StepColumnsProps): echarts.EChartsCoreOption {
  const { steps, categories, selected } = props;
  const muted = cssVariable('--muted');
  const isDimmed = (step: StepColumn): boolean => selected !== null && step.number !== selected;
  return {
    animation: !window.matchMedia('(prefers-reduced-motion: reduce)').matches,
    animationDuration: 250,
    grid: { left: 56, right: 8, top: 12, bottom: 26 },
    tooltip: {
      trigger: 'axis',
      axisPointer: { type: 'shadow', z: -1, shadowStyle: { color: cssVariable('--hover') } },
      backgroundColor: cssVariable('--raised'),
      borderColor: cssVariable('--line'),
      textStyle: { color: cssVariable('--text'), fontSize: 12.5 },
      confine: true,
      formatter: (hover: Hover | Hover[]) =>
        tooltipOf(props, (Array.isArray(hover) ? hover[0] : hover)?.dataIndex ?? -1),
    },
    xAxis: {
      type: 'category',
      data: steps.map((step) => String(step.number)),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: cssVariable('--line') } },
      axisLabel: { color: muted, hideOverlap: true },
    },
    yAxis: {
      type: 'value',
      splitNumber: 4,
      axisLabel: { color: muted, formatter: tick },
      splitLine: { lineStyle: { color: cssVariable('--line') } },
    },
    series: categories.map((category, part) => ({
      type: 'bar',
      stack: 'step',
      name: category.label,
      barMaxWidth: 56,
      barCategoryGap: '28%',
      cursor: 'pointer',
      itemStyle: { color: colourOf(category.id) },
      emphasis: { disabled: true },
      data: steps.map((step) => ({
        value: step.partsNs[part] ?? 0,
        itemStyle: { opacity: isDimmed(step) ? 0.35 : 1 },
      })),
    })),
  };
}

/** Steps as stacked columns; a click chooses one, a second click lets it go. */
export default function StepColumns(props: StepColumnsProps): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<echarts.ECharts | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (!box.current) return undefined;
    const made = echarts.init(box.current, null, { renderer: 'canvas' });
    chart.current = made;
    // The whole column is the target, not only its drawn part.
    made.getZr().on('click', (event) => {
      const { steps, selected, onSelect } = latest.current;
      const at = made.convertFromPixel({ xAxisIndex: 0 }, event.offsetX);
      const step = steps[Math.round(Number(at))];
      if (step) onSelect(step.number === selected ? null : step.number);
    });
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);

  const { steps, categories, selected, theme } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the options are drawn anew for these four; the handlers read `latest`
  useEffect(() => {
    chart.current?.setOption(optionsOf(latest.current), { notMerge: true });
  }, [steps, categories, selected, theme]);

  return <div className="columns-chart" ref={box} aria-hidden="true" />;
}
