/** Lists that are read page by page. */

import { SapaError } from "./api-error.ts";

/** How the next page is asked for: by its number, or by a cursor in one of two directions. */
export type Paging = "page" | "after" | "before";

interface AnyPage {
  data: unknown[];
  meta?: { page?: number; hasNextPage: boolean; endCursor?: string | null };
  pagination?: { hasMore: boolean; nextBefore: string | null };
}

/**
 * A list of the API. Nothing is read until you iterate over it or await it: `for await` reads page after page,
 * `await` reads one page.
 *
 * A list by page number may repeat or miss an item if others are added or removed meanwhile; lists by cursor
 * (timelines, loyalty histories, redemptions) do not.
 */
export class PagedList<Item, Page> implements PromiseLike<Page>, AsyncIterable<Item> {
  readonly #fetch: (query: object) => Promise<Page>;
  readonly #query: object;
  readonly #paging: Paging;

  constructor(fetch: (query: object) => Promise<Page>, query: object, paging: Paging) {
    this.#fetch = fetch;
    this.#query = query;
    this.#paging = paging;
  }

  /** The first page, or the one that the arguments ask for, with `data` and what is said about the list. */
  page(): Promise<Page> {
    return this.#fetch(this.#query);
  }

  /** Page after page, from the same one on. */
  async *pages(): AsyncGenerator<Page, void, undefined> {
    let query: object | undefined = this.#query;
    while (query !== undefined) {
      const page: Page = await this.#fetch(query);
      yield page;
      query = findNextQuery(query, page as AnyPage, this.#paging);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* (page as AnyPage).data as Item[];
  }

  /** Awaiting the list is awaiting its page. */
  then<Result = Page, Failure = never>(
    onFulfilled?: ((page: Page) => Result | PromiseLike<Result>) | null,
    onRejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.page().then(onFulfilled, onRejected);
  }
}

/** What asks for the next page, or undefined after the last. */
function findNextQuery(query: object, page: AnyPage, paging: Paging): object | undefined {
  const hasMore = paging === "before" ? page.pagination?.hasMore : page.meta?.hasNextPage;
  if (!hasMore) return undefined;
  const cursor = findCursor(page, paging);
  if (cursor === undefined || cursor === null || cursor === (query as Record<Paging, unknown>)[paging]) {
    throw new SapaError("The server repeats a page of this list instead of sending the next one.");
  }
  return { ...query, ...(paging === "after" ? { before: undefined } : {}), [paging]: cursor };
}

function findCursor(page: AnyPage, paging: Paging): string | number | null | undefined {
  if (paging === "before") return page.pagination?.nextBefore;
  return paging === "after" ? page.meta?.endCursor : page.meta!.page! + 1;
}
