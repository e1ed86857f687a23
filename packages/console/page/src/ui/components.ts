// The components that pages share (siblings 15.2 `host.components`).

export { Button, IconButton } from "./button";
export { Dialog } from "./dialog";
export { EmptyState, Notice, Skeleton, Spinner } from "./feedback";
export { JsonHighlight } from "./json";
export { Markdown } from "./markdown";
