/** The data of a line chart. */
export interface Line {
  readonly id: string;
  readonly label: string;
  readonly colour: string;
  /** A value for each of `xs`; null: missing. */
  readonly values: readonly (number | null)[];
  /** Lines with the same name are stacked and filled. */
  readonly stack?: string;
  readonly isFilled?: boolean;
  readonly isDashed?: boolean;
  /** Whether a value holds until the next one; otherwise values are joined by slopes. */
  readonly holds?: boolean;
}

/** A vertical line with a label. */
export interface Mark {
  readonly x: number;
  readonly label: string;
  readonly colour: string;
}

/** A labelled point. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly label: string;
  readonly colour: string;
}

export interface Band {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface TimeSeriesProps {
  readonly xs: readonly number[];
  readonly lines: readonly Line[];
  /** The range of the axis; by default from the first to the last of `xs`. */
  readonly bounds?: Range;
  /** Formats of the values: short on the axes, exact in the tooltip. */
  readonly words: {
    readonly tickX: (value: number) => string;
    readonly x: (value: number) => string;
    readonly tickY: (value: number) => string;
    /** Steps of the vertical ticks, ascending; round decimal numbers by default. */
    readonly stepsY?: readonly number[];
    readonly y: (value: number) => string;
  };
  readonly marks?: readonly Mark[];
  /** Labelled points of the data, such as its peak. */
  readonly peaks?: readonly Spot[];
  /** Points drawn above the chart, which may change often. */
  readonly spots?: readonly Spot[];
  readonly bands?: readonly Band[];
  readonly range?: Range | null;
  /** Called with the range of a drag; without it the user cannot select a range. */
  readonly onRange?: (range: Range | null) => void;
  /** Called with the position of a click. */
  readonly onPick?: (x: number) => void;
  /** The accessible name of the chart. */
  readonly label: string;
  readonly height?: number;
  /** A change of the theme reads the colours again. */
  readonly theme: string;
}
