/**
 * Every migration, in order. A new one goes at the end; none is ever changed or removed.
 */
import { kernel } from "./0001-kernel.ts";
import { enqueueFunction } from "./0002-enqueue-function.ts";
import { readyBytes } from "./0003-ready-bytes.ts";
import { audit } from "./0004-audit.ts";
import { sizedEnqueue } from "./0005-sized-enqueue.ts";
import { recovery } from "./0006-recovery.ts";
import { redrive } from "./0007-redrive.ts";
import { recoveryViews } from "./0008-recovery-views.ts";
import { installation } from "./0009-installation.ts";
import { breaker } from "./0010-breaker.ts";
import { workers } from "./0011-workers.ts";
import { lists } from "./0012-lists.ts";
import { allot } from "./0013-allot.ts";
import { order, orderIndexes } from "./0014-order.ts";
import { failedHeads } from "./0016-failed-heads.ts";
import { retiredLanes } from "./0017-retired-lanes.ts";
import { laneHome } from "./0018-lane-home.ts";
import { causes } from "./0019-causes.ts";
import { redriveGroups } from "./0020-redrive-groups.ts";
import { outside } from "./0021-outside.ts";
import { observations } from "./0022-observations.ts";
import { rollingCounts } from "./0023-rolling-counts.ts";
import { recoveryMirror } from "./0024-recovery-mirror.ts";
import { operations } from "./0025-operations.ts";
import { conservation } from "./0026-conservation.ts";
import { evidence } from "./0027-evidence.ts";
import type { Migration } from "./migration.ts";

export const MIGRATIONS: readonly Migration[] = [
  kernel,
  enqueueFunction,
  readyBytes,
  audit,
  sizedEnqueue,
  recovery,
  redrive,
  recoveryViews,
  installation,
  breaker,
  workers,
  lists,
  allot,
  order,
  orderIndexes,
  failedHeads,
  retiredLanes,
  laneHome,
  causes,
  redriveGroups,
  outside,
  observations,
  rollingCounts,
  recoveryMirror,
  operations,
  conservation,
  evidence,
];
