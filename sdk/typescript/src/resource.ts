/** What all resources of a client share. */

import { PagedList, type Paging } from "./paging.ts";
import type { ApiRequest, RequestOptions, Transport } from "./transport.ts";
import type { DownloadedFile } from "./values.ts";

/** The calls of one part of the API. */
export class Resource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  protected paged<Item, Page>(
    paging: Paging,
    path: string,
    query: object,
    options: RequestOptions | undefined,
  ): PagedList<Item, Page> {
    const fetch = (query: object) => this.#transport.json({ method: "GET", path, query }, options) as Promise<Page>;
    return new PagedList(fetch, query, paging);
  }

  /** What the response has in `data`, if it has a body. */
  protected async call<Result>(request: ApiRequest, options: RequestOptions | undefined): Promise<Result> {
    const body = (await this.#transport.json(request, options)) as { data: Result } | undefined;
    return body?.data as Result;
  }

  protected download(request: ApiRequest, options: RequestOptions | undefined): Promise<DownloadedFile> {
    return this.#transport.file(request, options);
  }

  /** `null` while the server makes the file. */
  protected findFile(request: ApiRequest, options: RequestOptions | undefined): Promise<DownloadedFile | null> {
    return this.#transport.findFile(request, options);
  }
}
