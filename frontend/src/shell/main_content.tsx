import { Component, createRef, type ReactNode } from 'react';
import type { Position } from '../state/page_position';

type Tools = typeof import('../state/page_position');

interface Props {
  /** The view and its subject. */
  readonly subject: string;
  /** The state of the view in the URL. */
  readonly state: string;
  readonly children: ReactNode;
}

interface Left {
  readonly state: string;
  readonly position: Position;
}

const NOTHING: Position = { scrolls: [], folds: new Map() };

/**
 * The main part of the page. A view that is opened again in the same state has its scroll position, and the parts that
 * were unfolded. A class, as only `getSnapshotBeforeUpdate` sees the view before it is replaced.
 */
export class MainContent extends Component<Props> {
  readonly main = createRef<HTMLElement>();
  readonly left = new Map<string, Left>();
  stop: () => void = () => undefined;
  /** Loaded after the first view is shown. */
  tools: Tools | null = null;

  override componentDidMount(): void {
    void import('../state/page_position').then((tools) => {
      this.tools = tools;
    });
  }

  override getSnapshotBeforeUpdate({ subject }: Props): Position | null {
    const main = this.main.current;
    if (subject === this.props.subject || !main) return null;
    return this.tools?.positionOf(main) ?? NOTHING;
  }

  override componentDidUpdate({ subject, state }: Props, _: unknown, position: Position | null) {
    const main = this.main.current;
    if (subject === this.props.subject && state !== this.props.state) this.stop();
    if (position === null || main === null) return;
    this.left.set(subject, { state, position });
    this.stop();
    main.scrollTop = 0;
    const last = this.left.get(this.props.subject);
    if (this.tools && last?.state === this.props.state) {
      this.stop = this.tools.restorePosition(main, last.position);
    }
  }

  override componentWillUnmount(): void {
    this.stop();
  }

  override render(): ReactNode {
    return (
      <main id="main" className="main" tabIndex={-1} ref={this.main}>
        {this.props.children}
      </main>
    );
  }
}
