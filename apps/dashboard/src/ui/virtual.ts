// The one door to the library that draws only the rows in sight.
export { useWindowVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
