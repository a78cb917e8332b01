import type { ReactNode } from 'react';

/** Line icons on a 24-unit square. */
const PATHS = {
  advice:
    'M9 18h6M10 21h4M12 3a6 6 0 0 0-3.6 10.8c.7.6 1.1 1.3 1.2 2.2h4.8c.1-.9.5-1.6 1.2-2.2A6 6 0 0 0 12 3Z',
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  operators: 'M4 6h16M4 12h11M4 18h6',
  kernels: 'M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4',
  timeline: 'M3 6h9M8 12h10M14 18h7M3 12h2M3 18h7',
  flame: 'M5 20h14M7 16h10M9 12h8M9 8h5M11 4h2',
  modules: 'M12 3 20 7.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  memory: 'M4 7h16v10H4zM8 11v2M12 11v2M16 11v2M7 17v3M12 17v3M17 17v3',
  distributed: 'M9 4h6v5H9zM3 15h6v5H3zM15 15h6v5h-6zM12 9v3M6 15v-3h12v3',
  compare: 'M8 4v16M16 4v16M8 8H3M8 14H5M16 8h5M16 14h3',
  trends: 'M3 18l5.5-6 4 3L21 6M21 6h-5M21 6v5',
  runs: 'M4 6h4v4H4zM4 14h4v4H4zM11 8h9M11 16h9',
  pin: 'M9 4h6l-1 6 3 3H7l3-3zM12 13v7',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  zoom: 'm20 20-4.5-4.5M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0ZM7.5 10.5h6M10.5 7.5v6',
  undo: 'M8 5 4 9l4 4M4 9h10a6 6 0 0 1 0 12H9',
  swap: 'M7 4 3 8l4 4M3 8h14M17 12l4 4-4 4M21 16H7',
  more: 'M5 12v.1M12 12v.1M19 12v.1',
  sliders: 'M4 7h9M17 7h3M13 4.5v5h4v-5zM4 17h3M11 17h9M7 14.5v5h4v-5z',
  health: 'M3 12.5h4l2.6-7 4.6 13 2.6-6H21',
  critical: 'M12 8v5M12 16.5v.1M8.2 3h7.6L21 8.2v7.6L15.8 21H8.2L3 15.8V8.2z',
  warning:
    'M12 9.5v4M12 17v.1M10.3 4.2 2.6 17.6A2 2 0 0 0 4.3 20.6h15.4a2 2 0 0 0 1.7-3L13.7 4.2a2 2 0 0 0-3.4 0Z',
  info: 'M12 11v5.5M12 7.6v.1M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  passed: 'm5 12.5 4.5 4.5L19 7.5',
  chevron: 'm9 6 6 6-6 6',
  down: 'm6 9 6 6 6-6',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  link: 'M10 14a4 4 0 0 0 5.7 0l3.5-3.5a4 4 0 0 0-5.7-5.7L12 6.3M14 10a4 4 0 0 0-5.7 0l-3.5 3.5a4 4 0 0 0 5.7 5.7L12 17.7',
  sun: 'M12 4V2M12 22v-2M4 12H2M22 12h-2M5.6 5.6 4.2 4.2M19.8 19.8l-1.4-1.4M5.6 18.4l-1.4 1.4M19.8 4.2l-1.4 1.4M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z',
  moon: 'M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5Z',
  help: 'M9.2 9a3 3 0 1 1 4.3 2.7c-.9.5-1.5 1.1-1.5 2.3M12 17.4v.1M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  search: 'm20 20-4.5-4.5M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0Z',
  close: 'M6 6l12 12M18 6 6 18',
  columns: 'M4 5h16v14H4zM10 5v14M15 5v14',
  share: 'M12 15V3.5M7.5 8 12 3.5 16.5 8M5 12v8h14v-8',
  download: 'M12 4v11M7.5 11 12 15.5 16.5 11M5 20h14',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  external: 'M14 5h5v5M19 5l-8 8M17 14v5H5V7h5',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
} as const;

export type IconName = keyof typeof PATHS;

interface Props {
  readonly name: IconName;
  readonly size?: number;
  readonly tone?: 'good' | 'bad' | 'warn' | 'muted' | undefined;
}

/** An icon next to text; hidden from screen readers. */
export function Icon({ name, size = 16, tone }: Props): ReactNode {
  return (
    <svg
      className={tone ? `icon ${tone}` : 'icon'}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
