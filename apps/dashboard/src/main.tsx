import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './styles/tokens.css';
import './styles/base.css';
import { answers } from './api/queries.js';
import { router } from './routes.js';
import { BaseProvider } from './ui/base.js';
import { QueryClientProvider } from './ui/query.js';
import { RouterProvider } from './ui/router.js';

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has no #root');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={answers}>
      <BaseProvider>
        <RouterProvider router={router} />
      </BaseProvider>
    </QueryClientProvider>
  </StrictMode>,
);
