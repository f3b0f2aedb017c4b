import type { MachineRow, SessionRow } from '@nd7/vault-api';
import { useState } from 'react';
import { runOf } from '../../check/runs.js';
import { Button, Facet, FilterToken } from '../../ui/controls.js';
import { cx } from '../../ui/cx.js';
import { Verdict } from '../../ui/Evidence.js';
import { Icon } from '../../ui/Icon.js';
import { Panel } from '../../ui/Panel.js';
import { Said } from '../../ui/Said.js';
import { machineName } from '../machines/name.js';
import { agentName } from './agents.js';
import { checkedOf } from './checked.js';
import { CHECKED, type SessionsSearch, STATES } from './search.js';
import css from './sessions.module.css';

type Set = (change: SessionsSearch) => void;

/** The filters that are on. A value nobody knows is shown as it is, so that it can be taken off. */
export function ActiveFilters(props: { search: SessionsSearch; set: Set; machines: readonly MachineRow[] }) {
  const { search, set } = props;
  const names = { q: 'has', machine: 'machine', agent: 'agent', state: 'state', checked: 'checked here' } as const;
  const on = (Object.keys(names) as (keyof typeof names)[]).filter((name) => search[name] !== undefined);
  if (on.length === 0) return <span className="small mute">no filter</span>;
  return on.map((name) => (
    <FilterToken
      key={name}
      name={names[name]}
      onRemove={() => {
        set({ [name]: undefined });
      }}
    >
      <Said
        text={
          name === 'machine'
            ? machineName(search.machine ?? '', props.machines)
            : name === 'agent'
              ? agentName(search.agent)
              : (search[name] ?? '')
        }
      />
    </FilterToken>
  ));
}

/** Values to filter by. Counts are of the rows that are loaded; on a narrow screen they fold. */
export function Facets(props: {
  search: SessionsSearch;
  set: Set;
  /** Undefined while there are none to count. */
  rows: readonly SessionRow[] | undefined;
  machines: readonly MachineRow[];
}) {
  const { search, set, rows } = props;
  const [open, setOpen] = useState(false);
  const agents = unique([...(rows ?? []).map((row) => row.agent ?? ''), search.agent ?? '']);
  const pick = (name: keyof SessionsSearch, value: string) => (on: boolean) => {
    set({ [name]: on ? value : undefined });
  };
  return (
    <Panel label="Filters">
      <Button
        look="ghost"
        className={`only-m ${css.fold ?? ''}`}
        aria-expanded={open}
        onClick={() => {
          setOpen(!open);
        }}
      >
        <Icon name="chev" turn={open} /> Filters
      </Button>
      <div id="facets" className={cx('pad', css.sets, !open && css.folded)}>
        <fieldset className={css.facet}>
          <legend>Checked here</legend>
          {CHECKED.map((value) => (
            <Facet
              key={value}
              checked={search.checked === value}
              onChange={pick('checked', value)}
              count={rows?.filter((row) => checkedOf(row, runOf(row)) === value).length}
            >
              {value === 'verified' && 'verified here'}
              {value === 'failed' && <Verdict shape="bad">failed</Verdict>}
              {value === 'unchecked' && <Verdict shape="none">not checked</Verdict>}
            </Facet>
          ))}
        </fieldset>
        <fieldset className={css.facet}>
          <legend>State</legend>
          {STATES.map((value) => (
            <Facet
              key={value}
              checked={search.state === value}
              onChange={pick('state', value)}
              count={rows?.filter((row) => row.state === value).length}
            >
              {value}
            </Facet>
          ))}
        </fieldset>
        {agents.length > 0 && (
          <fieldset className={css.facet}>
            <legend>Agent</legend>
            {agents.map((value) => (
              <Facet
                key={value}
                checked={search.agent === value}
                onChange={pick('agent', value)}
                count={rows?.filter((row) => row.agent === value).length}
              >
                {agentName(value)}
              </Facet>
            ))}
          </fieldset>
        )}
        {props.machines.length > 0 && (
          <fieldset className={css.facet}>
            <legend>Machine</legend>
            {props.machines.slice(0, 12).map((machine) => (
              <Facet
                key={machine.machine}
                checked={search.machine === machine.machine}
                onChange={pick('machine', machine.machine)}
                count={rows?.filter((row) => row.machine === machine.machine).length}
              >
                <Said text={machineName(machine.machine, props.machines)} />
              </Facet>
            ))}
          </fieldset>
        )}
      </div>
    </Panel>
  );
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].filter((value) => value !== '').sort();
}
