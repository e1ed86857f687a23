// Runs before the first paint, so that a page in a chosen theme never flashes in the other one.
import { applyTheme, storedTheme } from "./theme-choice";

applyTheme(storedTheme());
