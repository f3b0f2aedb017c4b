import { Controller, Get } from '@nestjs/common';
import { openApi } from '@nd7/vault-api';
import { VaultConfig } from '../config.js';
import { VERSION } from '../version.js';

@Controller()
export class OpenApiController {
  private readonly document: Record<string, unknown>;

  constructor(config: VaultConfig) {
    this.document = openApi({ version: VERSION, url: config.publicUrl ?? '/' });
  }

  @Get('openapi.json')
  openApi(): Record<string, unknown> {
    return this.document;
  }
}
