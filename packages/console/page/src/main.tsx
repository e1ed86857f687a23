// Starts the page: the connection, the shell, and the pages that are built in.
import { createRoot } from "react-dom/client";
import { Bus } from "./bus/bus";
import { uuid } from "./bus/uuid";
import { setup as setupChat } from "./chat/setup";
import { createHost } from "./host/host";
import { readSettings } from "./host/settings";
import { Shell } from "./host/shell";
import { busUrl } from "./host/token";

const browserId = uuid().slice(0, 13);
const bus = new Bus(busUrl, `page-${browserId}`);

setupChat(createHost(bus, browserId, "chat/page.js"), readSettings());
const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<Shell bus={bus} />);
bus.start();
