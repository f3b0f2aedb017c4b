import type { FastifyReply } from 'fastify';

/**
 * The answer to a statement: 201 with the receipt of a new one, 200 with the same bytes again, 202 and where the receipt will be while the leaf is
 * not published. A 202 is no receipt.
 */
export function sendReceipt(
  reply: FastifyReply,
  accepted: { isNew: boolean; receipt: string | undefined },
  location: string,
): void {
  void reply.header('location', location).header('cache-control', 'no-store');
  if (accepted.receipt === undefined)
    void reply.status(202).header('retry-after', '1').header('content-length', '0').send();
  else
    void reply
      .status(accepted.isNew ? 201 : 200)
      .header('content-type', 'text/plain; charset=utf-8')
      .send(accepted.receipt);
}
