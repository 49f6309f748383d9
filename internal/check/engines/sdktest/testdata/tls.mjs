// node tls.mjs MODULES CONNECTION prints what the account tells of itself, the time that is left
// after a break in 5 s, and what was set at a blob and at a container.
import { createRequire } from "node:module";

const [modules, connection] = process.argv.slice(2);
const { BlobServiceClient } = createRequire(modules + "/x.js")("@azure/storage-blob");

const service = BlobServiceClient.fromConnectionString(connection);
const account = await service.getAccountInfo();
const settings = await service.getProperties();
const box = service.getContainerClient("box");
await box.create({ access: "container" });
const blob = box.getBlockBlobClient("blob");
await blob.upload("x", 1, { tier: "Cool" });
const lease = blob.getBlobLeaseClient();
await lease.acquireLease(-1);
const { leaseTime } = await lease.breakLease(5);
const { accessTier } = await blob.getProperties();
const { blobPublicAccess } = await box.getProperties();
console.log(account.skuName, settings.defaultServiceVersion, leaseTime, accessTier, blobPublicAccess);
