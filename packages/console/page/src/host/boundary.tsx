// A page that breaks takes neither the shell nor the other pages with it.
import { Component, type ReactNode } from "react";
import { Button, EmptyState } from "../ui/components";

interface BoundaryState {
  error: Error | null;
}

interface BoundaryProps {
  /** Where the page is: going elsewhere is a new start. */
  at: string;
  children: ReactNode;
}

export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null };

  static getDerivedStateFromError(error: Error): BoundaryState {
    return { error };
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (before.at !== this.props.at && this.state.error !== null) this.setState({ error: null });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <EmptyState title="This page broke">
        <p role="alert">{error.message}</p>
        <p>Nothing is lost: conversations are in the stack, and what you wrote is in this browser.</p>
        <Button kind="primary" icon="refresh" onClick={() => location.reload()}>
          Load it again
        </Button>
      </EmptyState>
    );
  }
}
